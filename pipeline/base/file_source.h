// Reads a file for the parsers in format/.
#pragma once

#include <memory>
#include <string>

#include "format/byte_source.h"
#include "format/end_state.h"
#include "rocksdb/file_system.h"

namespace sstferry {

// Threads: Read() from any thread.
// Errors:  kCorrupt for a file that ends too soon; kNoSpace; otherwise, for a
// file that cannot be opened or read, the state given to Open().
class FileSource : public ByteSource {
 public:
  [[nodiscard]] static rocksdb::Status Open(rocksdb::FileSystem* file_system,
                                            const std::string& path,
                                            std::unique_ptr<FileSource>* out,
                                            EndState when_unreadable =
                                                EndState::kInternal);

  [[nodiscard]] rocksdb::Status Read(uint64_t offset, size_t n,
                                     std::string* scratch,
                                     rocksdb::Slice* out) const override;
  uint64_t size() const override { return size_; }

 private:
  FileSource(std::string path, uint64_t size,
             std::unique_ptr<rocksdb::FSRandomAccessFile> file,
             EndState when_unreadable);
  [[nodiscard]] static rocksdb::Status Failed(const rocksdb::Status& status,
                                              EndState when_unreadable,
                                              const std::string& path);

  const std::string path_;
  const uint64_t size_;
  const std::unique_ptr<rocksdb::FSRandomAccessFile> file_;
  const EndState when_unreadable_;
};

}  // namespace sstferry
