#include "pipeline/disk/staging_file.h"

#include <sys/mman.h>

#include <cstring>

#include "format/end_state.h"
#include "pipeline/disk/durable.h"

namespace sstferry {

using rocksdb::IOOptions;
using rocksdb::Slice;
using rocksdb::Status;

StagingBuffer::~StagingBuffer() {
  if (mapped_ != nullptr) {
    munmap(mapped_, 2 * kBytes);
  }
}

// Returns the buffer. Uses mmap() instead of malloc(), because after free() the
// heap would keep memory with large pages.
char* StagingBuffer::data() {
  if (data_ != nullptr) {
    return data_;
  }
  void* const mapped = mmap(nullptr, 2 * kBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) {
    return nullptr;
  }
  mapped_ = mapped;
  const auto address = reinterpret_cast<uintptr_t>(mapped);
  data_ = static_cast<char*>(mapped) + (kBytes - address % kBytes) % kBytes;
  madvise(data_, kBytes, MADV_HUGEPAGE);  // without a free large page, the
                                          // kernel uses small pages
  return data_;
}

StagingFile::StagingFile(rocksdb::FileSystem* file_system, StagingPlace place,
                         StagingBuffer* buffer)
    : file_system_(file_system), place_(std::move(place)), buffer_(buffer) {}

Status StagingFile::At(const char* step, const Status& status) const {
  return WithContext(status, EndStateOf(status),
                     std::string(step) + " " + place_.path);
}

Status StagingFile::Open() {
  if (buffer_->data() == nullptr) {
    return MakeStatus(EndState::kInternal, "no memory for a staging buffer");
  }
  rocksdb::FileOptions options;
  options.use_direct_writes = place_.direct;
  if (place_.part_at.has_value()) {
    return At("open", file_system_->NewRandomRWFile(place_.path, options,
                                                    &part_, nullptr));
  }
  return At("create", file_system_->NewWritableFile(place_.path, options,
                                                    &file_, nullptr));
}

Status StagingFile::Room(size_t bytes, char** room) {
  if (bytes > kMaxPayloadBytes) {
    return MakeStatus(EndState::kInternal,
                      "write " + place_.path + ": expected at most " +
                          std::to_string(kMaxPayloadBytes) +
                          " bytes at once, found " + std::to_string(bytes));
  }
  const bool full = bytes > StagingBuffer::kBytes - buffered_ ||
                    (place_.direct &&
                     buffered_ >= StagingBuffer::kDirectWriteBytes);
  if (full) {
    RETURN_IF_ERROR(Write());
  }
  *room = buffer_->data() + buffered_;
  return Status::OK();
}

Slice StagingFile::Commit(size_t bytes) {
  const Slice committed(buffer_->data() + buffered_, bytes);
  buffered_ += bytes;
  return committed;
}

Status StagingFile::Write() {
  const size_t unit = buffered_ >= StagingBuffer::kDirectWriteBytes
                          ? StagingBuffer::kDirectWriteBytes
                          : StagingBuffer::kAlignment;
  const size_t rest = place_.direct ? buffered_ % unit : 0;
  const Slice bytes(buffer_->data(), buffered_ - rest);
  const rocksdb::IOStatus status =
      part_ != nullptr
          ? part_->Write(*place_.part_at + written_, bytes, IOOptions(),
                         nullptr)
          : file_->Append(bytes, IOOptions(), nullptr);
  if (status.ok() && file_ != nullptr) {
    // Only starts to write the bytes to the disk. The later sync reports
    // errors.
    file_->RangeSync(written_, bytes.size(), IOOptions(), nullptr)
        .PermitUncheckedError();
  }
  std::memmove(buffer_->data(), bytes.data() + bytes.size(), rest);
  written_ += bytes.size();
  buffered_ = rest;
  return At("write", status);
}

Status StagingFile::Finish(bool sync, const Access* access) {
  Status status = buffered_ == 0 ? Status::OK() : Write();
  if (status.ok() && buffered_ >= StagingBuffer::kAlignment) {
    status = Write();  // writes what the large write left
  }
  if (status.ok() && buffered_ != 0) {
    status = MakeStatus(EndState::kInternal,
                        "write " + place_.path + ": expected a size that is a "
                        "multiple of " +
                            std::to_string(StagingBuffer::kAlignment) +
                            ", found " + std::to_string(bytes()));
  }
  FaultPoint("StagingFile:Written");
  if (status.ok() && access != nullptr) {
    status = SetAccess(place_.path, *access);
  }
  if (status.ok() && sync) {
    status = At("sync", part_ != nullptr
                            ? part_->Fsync(IOOptions(), nullptr)
                            : file_->Fsync(IOOptions(), nullptr));
  }
  const Status closed = At("close", part_ != nullptr
                                        ? part_->Close(IOOptions(), nullptr)
                                        : file_->Close(IOOptions(), nullptr));
  file_.reset();
  part_.reset();
  return status.ok() ? closed : status;
}

}  // namespace sstferry
