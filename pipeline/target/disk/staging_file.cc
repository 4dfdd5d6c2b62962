#include "pipeline/target/disk/staging_file.h"

#include "format/end_state.h"
#include "pipeline/target/disk/durable.h"

namespace sstferry {

using rocksdb::IOOptions;
using rocksdb::Slice;
using rocksdb::Status;

StagingFile::StagingFile(rocksdb::FileSystem* file_system, std::string path,
                         StagingBuffer* buffer,
                         std::optional<uint64_t> part_at)
    : file_system_(file_system),
      path_(std::move(path)),
      buffer_(buffer),
      part_at_(part_at) {}

Status StagingFile::At(const char* step, const Status& status) const {
  return WithContext(status, EndStateOf(status),
                     std::string(step) + " " + path_);
}

Status StagingFile::Open() {
  if (buffer_->data() == nullptr) {
    return MakeStatus(EndState::kInternal, "no memory for a staging buffer");
  }
  if (part_at_.has_value()) {
    return At("open", file_system_->NewRandomRWFile(
                          path_, rocksdb::FileOptions(), &part_, nullptr));
  }
  return At("create", file_system_->NewWritableFile(
                          path_, rocksdb::FileOptions(), &file_, nullptr));
}

Status StagingFile::Room(size_t bytes, char** room) {
  if (bytes > kMaxPayloadBytes) {
    return MakeStatus(EndState::kInternal,
                      "write " + path_ + ": expected at most " +
                          std::to_string(kMaxPayloadBytes) +
                          " bytes at once, found " + std::to_string(bytes));
  }
  if (bytes > StagingBuffer::kBytes - buffered_) {
    const Status status = Write();
    if (!status.ok()) {
      return status;
    }
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
  const Slice bytes(buffer_->data(), buffered_);
  const rocksdb::IOStatus status =
      part_at_.has_value()
          ? part_->Write(*part_at_ + written_, bytes, IOOptions(), nullptr)
          : file_->Append(bytes, IOOptions(), nullptr);
  if (status.ok() && file_ != nullptr) {
    // Only begins to write; what goes wrong with it, the sync says.
    file_->RangeSync(written_, buffered_, IOOptions(), nullptr)
        .PermitUncheckedError();
  }
  written_ += buffered_;
  buffered_ = 0;
  return At("write", status);
}

Status StagingFile::Finish(bool sync, const Access* access) {
  Status status = buffered_ == 0 ? Status::OK() : Write();
  FaultPoint("StagingFile:Written");
  if (status.ok() && access != nullptr) {
    status = SetAccess(path_, *access);
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
