// Reads a file for the parsers in format/.
#pragma once

#include <memory>
#include <string>

#include "format/byte_source.h"
#include "format/end_state.h"
#include "rocksdb/file_system.h"
#include "sstferry/descriptor.h"

namespace sstferry {

// A file as a source of bytes.
//
// Threads: Read() from any thread.
// Errors:  kCorrupt for a truncated file; kNoSpace; for a file that cannot be
// opened or read, the state given to Open().
class FileSource : public ByteSource {
 public:
  [[nodiscard]] static rocksdb::Status Open(rocksdb::FileSystem* file_system,
                                            const std::string& path,
                                            std::unique_ptr<FileSource>* out,
                                            EndState when_unreadable =
                                                EndState::kInternal);
  // Opens a file, and asks the file system to drop the file's bytes from the
  // page cache, so that Read() reads them from the disk. (Bytes that are not
  // written yet stay in the cache.) Use it for files that another process may
  // have left after a failed sync: the kernel reports such an error once, and
  // then treats the lost bytes in the cache as written. If the bytes cannot be
  // dropped, the file is opened all the same.
  [[nodiscard]] static rocksdb::Status OpenFromDisk(
      rocksdb::FileSystem* file_system, const std::string& path,
      std::unique_ptr<FileSource>* out);
  // Opens a file in a directory that another account may own, by the rules of
  // OpenForeign(). Reads through the checked descriptor; only a file system
  // other than RocksDB's default one opens the file again, by name.
  [[nodiscard]] static rocksdb::Status OpenForeign(
      rocksdb::FileSystem* file_system, const std::string& path,
      std::unique_ptr<FileSource>* out,
      EndState when_unreadable = EndState::kInternal);

  [[nodiscard]] rocksdb::Status Read(uint64_t offset, size_t n,
                                     std::string* scratch,
                                     rocksdb::Slice* out) const override;
  uint64_t size() const override { return size_; }

 private:
  FileSource(std::string path, uint64_t size,
             std::unique_ptr<rocksdb::FSRandomAccessFile> file,
             Descriptor descriptor, EndState when_unreadable);
  // Counts the read bytes, and checks that `n` bytes were read.
  [[nodiscard]] rocksdb::Status Complete(uint64_t offset, size_t n,
                                         const rocksdb::Slice& found) const;
  [[nodiscard]] static rocksdb::Status Failed(const rocksdb::Status& status,
                                              EndState when_unreadable,
                                              const std::string& path);

  const std::string path_;
  const uint64_t size_;
  const std::unique_ptr<rocksdb::FSRandomAccessFile> file_;
  const Descriptor descriptor_;  // used instead of file_
  const EndState when_unreadable_;
};

// Reads a file in a directory that another account may own.
//   kCorrupt         it has more than `max_bytes`
//   when_unreadable  it is missing, or OpenForeign() refuses it
[[nodiscard]] rocksdb::Status ReadForeignFile(
    rocksdb::FileSystem* file_system, const std::string& path,
    uint64_t max_bytes, std::string* text,
    EndState when_unreadable = EndState::kInternal);

}  // namespace sstferry
