// One chunk on its way to disk.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rocksdb/file_system.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Threads: one. Errors carry the path; a failed sync is final.
class StagingFile {
 public:
  // Borrows the file system.
  StagingFile(rocksdb::FileSystem* file_system, std::string path);

  [[nodiscard]] rocksdb::Status Open();
  [[nodiscard]] rocksdb::Status Append(const rocksdb::Slice& data);
  // Closes; with `sync` the contents are durable first.
  [[nodiscard]] rocksdb::Status Finish(bool sync);
  uint64_t bytes() const { return bytes_; }

 private:
  rocksdb::FileSystem* const file_system_;
  const std::string path_;
  std::unique_ptr<rocksdb::FSWritableFile> file_;
  uint64_t bytes_ = 0;
};

}  // namespace sstferry
