// Writes one received chunk to disk.
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

// The buffer of one lane, used for one file after another. Allocated for the
// first file.
class StagingBuffer {
 public:
  // Buffered bytes are written when the next frame would not fit.
  static constexpr size_t kBytes = 2 * size_t{kMaxPayloadBytes};
  // Memory, offsets and sizes of direct writes are multiples of this.
  static constexpr size_t kAlignment = 4096;
  // Size of one direct write. From one large page, the kernel sends this many
  // bytes to the disk as one request; from small pages it needs two or three.
  static constexpr size_t kDirectWriteBytes = size_t{1} << 20;

  StagingBuffer() = default;
  ~StagingBuffer();
  StagingBuffer(const StagingBuffer&) = delete;
  StagingBuffer& operator=(const StagingBuffer&) = delete;
  // Returns the buffer; null if memory ran out.
  char* data();

 private:
  // Mapped memory of 2 * kBytes; `data_` points into it.
  void* mapped_ = nullptr;
  char* data_ = nullptr;
};

// Where the bytes are written.
struct StagingPlace {
  std::string path;
  // Set: the bytes are a part of an existing file, at this offset.
  std::optional<uint64_t> part_at;
  // Bypasses the page cache if the file system can. Only for a part whose
  // offset and size are multiples of StagingBuffer::kAlignment.
  bool direct = false;
};

// One file, or part of a file, that is being written. Bytes are received
// directly into the buffer and written from there. Without `direct` they go
// through the page cache, because the check reads all of them again and the
// kernel starts to write them before the sync.
//
// Threads: one. Error messages contain the path; a failed write or sync is
// final.
class StagingFile {
 public:
  // Borrows the file system and the buffer.
  StagingFile(rocksdb::FileSystem* file_system, StagingPlace place,
              StagingBuffer* buffer);

  [[nodiscard]] rocksdb::Status Open();
  // Returns memory for the next `bytes` bytes, at most kMaxPayloadBytes; may
  // write buffered bytes to make room. Only bytes passed to Commit() become
  // part of the file.
  [[nodiscard]] rocksdb::Status Room(size_t bytes, char** room);
  // Appends the first `bytes` bytes of the room to the file. Returns these
  // bytes, valid until the next call.
  rocksdb::Slice Commit(size_t bytes);
  // Writes the remaining bytes, sets `access` (null: leaves it unchanged),
  // syncs the file if `sync` is true, and closes it.
  [[nodiscard]] rocksdb::Status Finish(bool sync,
                                       const Access* access = nullptr);
  uint64_t bytes() const { return written_ + buffered_; }
  const std::string& path() const { return place_.path; }

 private:
  // Writes the buffer. With `direct`, writes only a multiple of
  // kDirectWriteBytes, or of kAlignment if the buffer has less than
  // kDirectWriteBytes.
  [[nodiscard]] rocksdb::Status Write();
  [[nodiscard]] rocksdb::Status At(const char* step,
                                   const rocksdb::Status& status) const;

  rocksdb::FileSystem* const file_system_;
  const StagingPlace place_;
  StagingBuffer* const buffer_;
  std::unique_ptr<rocksdb::FSWritableFile> file_;
  // The existing file, if part_at is set.
  std::unique_ptr<rocksdb::FSRandomRWFile> part_;
  size_t buffered_ = 0;   // bytes in buffer_
  uint64_t written_ = 0;  // bytes of the file that were written before
};

}  // namespace sstferry
