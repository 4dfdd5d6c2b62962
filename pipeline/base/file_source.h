// Reads a file for the parsers in format/.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "format/byte_source.h"
#include "format/end_state.h"
#include "rocksdb/file_system.h"
#include "sstferry/descriptor.h"

namespace sstferry {

// Reads the bytes of a file at any offset.
//
// Threads: any thread may call Read().
// Errors:  kCorrupt if the file is truncated; kNoSpace; `when_unreadable` if
//          the file cannot be opened or read.
class FileSource : public ByteSource {
 public:
  [[nodiscard]] static rocksdb::Status Open(rocksdb::FileSystem* file_system,
                                            const std::string& path,
                                            std::unique_ptr<FileSource>* out,
                                            EndState when_unreadable =
                                                EndState::kInternal);
  // Opens a file for reading from the disk instead of the page cache. Use this
  // function for files that another process may have left after a failed sync.
  // The kernel reports such an error only once; later, it treats the lost bytes
  // in the page cache as if they were on the disk. This function asks the file
  // system to drop the file's bytes from the cache. It ignores a failure to
  // drop them. Bytes that are still to be written stay in the cache.
  [[nodiscard]] static rocksdb::Status OpenFromDisk(
      rocksdb::FileSystem* file_system, const std::string& path,
      std::unique_ptr<FileSource>* out);
  // Opens a file in a directory that another account may own. Checks the file
  // as OpenForeign() in open_file.h does. Reads through the checked descriptor
  // if `file_system` is RocksDB's default file system. Any other file system
  // opens the file once more, by its name.
  [[nodiscard]] static rocksdb::Status OpenForeign(
      rocksdb::FileSystem* file_system, const std::string& path,
      std::unique_ptr<FileSource>* out,
      EndState when_unreadable = EndState::kInternal);

  [[nodiscard]] rocksdb::Status Read(uint64_t offset, size_t n,
                                     std::string* scratch,
                                     rocksdb::Slice* out) const override;
  uint64_t size() const override { return size_; }
  // Returns the owner of a file that OpenForeign() opened. Returns this
  // process's account for other files, and for files that exist only in another
  // file system.
  uid_t owner() const { return owner_; }

 private:
  FileSource(std::string path, uint64_t size,
             std::unique_ptr<rocksdb::FSRandomAccessFile> file,
             Descriptor descriptor, EndState when_unreadable);
  // Adds the read bytes to RocksDB's statistics. Checks that `n` bytes were
  // read.
  [[nodiscard]] rocksdb::Status Complete(uint64_t offset, size_t n,
                                         const rocksdb::Slice& found) const;
  [[nodiscard]] static rocksdb::Status Failed(const rocksdb::Status& status,
                                              EndState when_unreadable,
                                              const std::string& path);

  const std::string path_;
  const uint64_t size_;
  const std::unique_ptr<rocksdb::FSRandomAccessFile> file_;
  const Descriptor descriptor_;  // if open, replaces file_
  const EndState when_unreadable_;
  uid_t owner_;
};

// Reads a file in a directory that another account may own. If `owner` is not
// null, sets *owner to the file's owner (FileSource::owner()).
//   kCorrupt         the file has more than `max_bytes` bytes
//   when_unreadable  the file is missing, or OpenForeign() refuses the file
[[nodiscard]] rocksdb::Status ReadForeignFile(
    rocksdb::FileSystem* file_system, const std::string& path,
    uint64_t max_bytes, std::string* text,
    EndState when_unreadable = EndState::kInternal, uid_t* owner = nullptr);

}  // namespace sstferry
