// One chunk on its way to disk.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "format/limits.h"
#include "pipeline/disk/access.h"
#include "rocksdb/file_system.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// One per lane, used by one file after another, and taken with the first one.
class StagingBuffer {
 public:
  // Waiting bytes are written before a frame would not fit behind them.
  static constexpr size_t kBytes = 2 * size_t{kMaxPayloadBytes};
  // Direct writes have memory, offsets and sizes that are multiples of it.
  static constexpr size_t kAlignment = 4096;
  // Bytes of one direct write. The kernel hands so many to a disk as one
  // request if they are in one large page; from small pages it makes two or
  // three.
  static constexpr size_t kDirectWriteBytes = size_t{1} << 20;

  StagingBuffer() = default;
  ~StagingBuffer();
  StagingBuffer(const StagingBuffer&) = delete;
  StagingBuffer& operator=(const StagingBuffer&) = delete;
  // Null: there is no memory.
  char* data();

 private:
  void* mapped_ = nullptr;  // twice kBytes, of which `data_` is a part
  char* data_ = nullptr;
};

// Where the bytes go.
struct StagingPlace {
  std::string path;
  // They are a part of a file that exists, from there on.
  std::optional<uint64_t> part_at;
  // Past the page cache, where the file system can. Only a part whose offset
  // and size are multiples of StagingBuffer::kAlignment.
  bool direct = false;
};

// The bytes are received straight into the buffer and written from there.
// Without `direct` they go through the page cache, because the check reads all
// of them back, and are on their way to the disk before the sync asks for it.
//
// Threads: one. Errors carry the path; a failed write or sync is final.
class StagingFile {
 public:
  // Borrows the file system and the buffer.
  StagingFile(rocksdb::FileSystem* file_system, StagingPlace place,
              StagingBuffer* buffer);

  [[nodiscard]] rocksdb::Status Open();
  // Memory for the next `bytes` bytes, at most kMaxPayloadBytes; may write
  // what stands in the way. Only what Commit() is told of belongs to the file.
  [[nodiscard]] rocksdb::Status Room(size_t bytes, char** room);
  // The first `bytes` bytes of the room are the file's next ones; returns them,
  // valid until the next call.
  rocksdb::Slice Commit(size_t bytes);
  // Closes; with `sync` the contents are durable first. The file gets `access`
  // before that; null: it stays as it was made.
  [[nodiscard]] rocksdb::Status Finish(bool sync,
                                       const Access* access = nullptr);
  uint64_t bytes() const { return written_ + buffered_; }
  const std::string& path() const { return place_.path; }

 private:
  // Writes the buffer; with `direct` only what is a multiple of
  // kDirectWriteBytes, or of kAlignment if it holds less than that.
  [[nodiscard]] rocksdb::Status Write();
  [[nodiscard]] rocksdb::Status At(const char* step,
                                   const rocksdb::Status& status) const;

  rocksdb::FileSystem* const file_system_;
  const StagingPlace place_;
  StagingBuffer* const buffer_;
  std::unique_ptr<rocksdb::FSWritableFile> file_;
  std::unique_ptr<rocksdb::FSRandomRWFile> part_;  // of it, with part_at_
  size_t buffered_ = 0;   // bytes in buffer_
  uint64_t written_ = 0;  // bytes of the file before those
};

}  // namespace sstferry
