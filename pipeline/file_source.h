// A file as the bytes that format/'s parsers read.
#pragma once

#include <memory>
#include <string>

#include "format/byte_source.h"
#include "rocksdb/file_system.h"

namespace sstferry {

// Threads: Read() from any thread.
class FileSource : public ByteSource {
 public:
  [[nodiscard]] static rocksdb::Status Open(rocksdb::FileSystem* file_system,
                                            const std::string& path,
                                            std::unique_ptr<FileSource>* out);

  [[nodiscard]] rocksdb::Status Read(uint64_t offset, size_t n,
                                     std::string* scratch,
                                     rocksdb::Slice* out) const override;
  uint64_t size() const override { return size_; }

 private:
  FileSource(std::string path, uint64_t size,
             std::unique_ptr<rocksdb::FSRandomAccessFile> file);

  const std::string path_;
  const uint64_t size_;
  const std::unique_ptr<rocksdb::FSRandomAccessFile> file_;
};

}  // namespace sstferry
