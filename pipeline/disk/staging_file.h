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

// The buffer of one lane. The lane uses it for one file after another, and
// allocates it for the first file.
class StagingBuffer {
 public:
  // If the next frame would not fit, the buffered bytes are written.
  static constexpr size_t kBytes = 2 * size_t{kMaxPayloadBytes};
  // The address, offset and size of a direct write are multiples of this.
  static constexpr size_t kAlignment = 4096;
  // Size of one direct write. If the memory is one large page, the kernel sends
  // this many bytes to the disk as one request. For small pages, the kernel
  // needs two or three requests.
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

// The file, or the part of a file, to which bytes are written.
struct StagingPlace {
  std::string path;
  // If set, the bytes overwrite this offset of an existing file.
  std::optional<uint64_t> part_at;
  // If true, bypasses the page cache where the file system supports this.
  // REQUIRES: part_at is set; offset and size of the part are multiples of
  // StagingBuffer::kAlignment.
  bool direct = false;
};

// Writes one file, or a part of a file. The lane receives bytes directly into
// the buffer, and they are written from there. Without `direct`, the bytes go
// through the page cache, for two reasons: the check reads all of them again,
// and the kernel begins to write them before the sync.
//
// Threads: one. Error messages contain the path. After a failed write or sync,
// all later calls fail.
class StagingFile {
 public:
  // Borrows the file system and the buffer.
  StagingFile(rocksdb::FileSystem* file_system, StagingPlace place,
              StagingBuffer* buffer);

  [[nodiscard]] rocksdb::Status Open();
  // Returns memory for the next `bytes` bytes, at most kMaxPayloadBytes. May
  // write buffered bytes first. Only bytes passed to Commit() become part of
  // the file.
  [[nodiscard]] rocksdb::Status Room(size_t bytes, char** room);
  // Appends the first `bytes` bytes of the memory from Room() to the file.
  // Returns these bytes, which stay valid until the next call.
  rocksdb::Slice Commit(size_t bytes);
  // Writes the remaining bytes, and closes the file. Sets the file's access
  // before, unless `access` is null, and syncs the file if `sync` is true.
  [[nodiscard]] rocksdb::Status Finish(bool sync,
                                       const Access* access = nullptr);
  uint64_t bytes() const { return written_ + buffered_; }
  const std::string& path() const { return place_.path; }

 private:
  // Writes the buffer. With `direct`, writes a multiple of kDirectWriteBytes.
  // If the buffer contains less than kDirectWriteBytes, writes a multiple of
  // kAlignment.
  [[nodiscard]] rocksdb::Status Write();
  [[nodiscard]] rocksdb::Status At(const char* step,
                                   const rocksdb::Status& status) const;

  rocksdb::FileSystem* const file_system_;
  const StagingPlace place_;
  StagingBuffer* const buffer_;
  std::unique_ptr<rocksdb::FSWritableFile> file_;
  // The open existing file; null unless place.part_at is set.
  std::unique_ptr<rocksdb::FSRandomRWFile> part_;
  size_t buffered_ = 0;   // bytes in buffer_
  uint64_t written_ = 0;  // bytes of the file already written
};

}  // namespace sstferry
