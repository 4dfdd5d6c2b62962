// One chunk on its way to disk.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "rocksdb/file_system.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Memory that O_DIRECT accepts. One per lane, used by one file after another.
class StagingBuffer {
 public:
  static constexpr size_t kBytes = 1u << 20;
  static constexpr size_t kAlignment = 4096;

  StagingBuffer()
      : data_(static_cast<char*>(std::aligned_alloc(kAlignment, kBytes))) {}
  ~StagingBuffer() { std::free(data_); }
  StagingBuffer(const StagingBuffer&) = delete;
  StagingBuffer& operator=(const StagingBuffer&) = delete;
  char* data() const { return data_; }

 private:
  char* const data_;
};

// Writes past the page cache where the file system can (copying a received
// frame into an aligned buffer costs far less than the page cache's copy into
// new pages, and the sync that follows has nothing left to write), through it
// elsewhere.
//
// Threads: one. Errors carry the path; a failed write or sync is final.
class StagingFile {
 public:
  // Borrows the file system and the buffer.
  StagingFile(rocksdb::FileSystem* file_system, std::string path,
              StagingBuffer* buffer);

  [[nodiscard]] rocksdb::Status Open();
  [[nodiscard]] rocksdb::Status Append(const rocksdb::Slice& data);
  // Closes; with `sync` the contents are durable first.
  [[nodiscard]] rocksdb::Status Finish(bool sync);
  uint64_t bytes() const { return bytes_; }

 private:
  [[nodiscard]] rocksdb::Status WriteBuffer();
  [[nodiscard]] rocksdb::Status WriteTail();
  [[nodiscard]] rocksdb::Status At(const char* step,
                                   const rocksdb::Status& status) const;

  rocksdb::FileSystem* const file_system_;
  const std::string path_;
  StagingBuffer* const buffer_;
  std::unique_ptr<rocksdb::FSWritableFile> file_;
  bool direct_ = false;
  size_t buffered_ = 0;   // bytes in buffer_, direct writes only
  uint64_t written_ = 0;  // where the buffer's bytes go
  uint64_t bytes_ = 0;
};

}  // namespace sstferry
