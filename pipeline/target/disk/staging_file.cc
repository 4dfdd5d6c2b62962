#include "pipeline/target/disk/staging_file.h"

#include "format/end_state.h"
#include "pipeline/target/disk/durable.h"

namespace sstferry {

using rocksdb::IOOptions;
using rocksdb::Slice;
using rocksdb::Status;

StagingFile::StagingFile(rocksdb::FileSystem* file_system, std::string path,
                         StagingBuffer* buffer)
    : file_system_(file_system), path_(std::move(path)), buffer_(buffer) {}

Status StagingFile::At(const char* step, const Status& status) const {
  return WithContext(status, EndStateOf(status),
                     std::string(step) + " " + path_);
}

Status StagingFile::Open() {
  if (buffer_->data() == nullptr) {
    return MakeStatus(EndState::kInternal, "no memory for a staging buffer");
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

void StagingFile::Commit(size_t bytes) { buffered_ += bytes; }

Status StagingFile::Write() {
  const rocksdb::IOStatus status = file_->Append(
      Slice(buffer_->data(), buffered_), IOOptions(), nullptr);
  if (status.ok()) {
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
    status = At("sync", file_->Fsync(IOOptions(), nullptr));
  }
  const Status closed = At("close", file_->Close(IOOptions(), nullptr));
  file_.reset();
  return status.ok() ? closed : status;
}

}  // namespace sstferry
