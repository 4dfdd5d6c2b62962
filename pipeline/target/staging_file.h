// One chunk on its way to disk.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "format/limits.h"
#include "rocksdb/file_system.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Memory that O_DIRECT accepts. One per lane, used by one file after another,
// and taken with the first one.
class StagingBuffer {
 public:
  static constexpr size_t kAlignment = 4096;
  // What is left of a write is less than a block: a largest frame fits behind.
  static constexpr size_t kBytes = 2 * size_t{kMaxPayloadBytes};

  StagingBuffer() = default;
  ~StagingBuffer() { std::free(data_); }
  StagingBuffer(const StagingBuffer&) = delete;
  StagingBuffer& operator=(const StagingBuffer&) = delete;
  // Null: there is no memory.
  char* data() {
    if (data_ == nullptr) {
      data_ = static_cast<char*>(std::aligned_alloc(kAlignment, kBytes));
    }
    return data_;
  }

 private:
  char* data_ = nullptr;
};

// The bytes are received straight into the buffer and written from there:
// past the page cache where the file system can, which saves its copy into new
// pages and leaves the sync that follows nothing to write; through it
// elsewhere, and where somebody reads the file soon: then what was written is
// on its way to the disk before the sync asks for it.
//
// Threads: one. Errors carry the path; a failed write or sync is final.
class StagingFile {
 public:
  enum class Cache { kPast, kThrough };

  // Borrows the file system and the buffer.
  StagingFile(rocksdb::FileSystem* file_system, std::string path,
              StagingBuffer* buffer, Cache cache = Cache::kPast);

  [[nodiscard]] rocksdb::Status Open();
  // Memory for the next `bytes` bytes, at most kMaxPayloadBytes; may write
  // what stands in the way. Only what Commit() is told of belongs to the file.
  [[nodiscard]] rocksdb::Status Room(size_t bytes, char** room);
  // The first `bytes` bytes of the room are the file's next ones.
  void Commit(size_t bytes);
  // Closes; with `sync` the contents are durable first.
  [[nodiscard]] rocksdb::Status Finish(bool sync);
  uint64_t bytes() const { return written_ + buffered_; }

 private:
  [[nodiscard]] rocksdb::Status OpenCached();
  // Writes the buffer's first bytes and moves the rest to its front.
  [[nodiscard]] rocksdb::Status Write(size_t bytes);
  [[nodiscard]] rocksdb::Status WriteTail();
  [[nodiscard]] rocksdb::Status At(const char* step,
                                   const rocksdb::Status& status) const;

  rocksdb::FileSystem* const file_system_;
  const std::string path_;
  StagingBuffer* const buffer_;
  const Cache cache_;
  std::unique_ptr<rocksdb::FSWritableFile> file_;
  bool direct_ = false;
  size_t buffered_ = 0;   // bytes in buffer_
  uint64_t written_ = 0;  // bytes of the file before those
};

}  // namespace sstferry
