#include "pipeline/target/staging_file.h"

#include <cstring>

#include "format/end_state.h"
#include "pipeline/target/durable.h"

namespace sstferry {

using rocksdb::IOOptions;
using rocksdb::Slice;
using rocksdb::Status;

StagingFile::StagingFile(rocksdb::FileSystem* file_system, std::string path,
                         StagingBuffer* buffer, Cache cache)
    : file_system_(file_system),
      path_(std::move(path)),
      buffer_(buffer),
      cache_(cache) {}

Status StagingFile::At(const char* step, const Status& status) const {
  return WithContext(status, EndStateOf(status),
                     std::string(step) + " " + path_);
}

Status StagingFile::Open() {
  if (buffer_->data() == nullptr) {
    return MakeStatus(EndState::kInternal, "no memory for a staging buffer");
  }
  if (cache_ == Cache::kThrough) {
    return OpenCached();
  }
  rocksdb::FileOptions options;
  options.use_direct_writes = true;
  const rocksdb::IOStatus created =
      file_system_->NewWritableFile(path_, options, &file_, nullptr);
  if (created.IsNoSpace() || created.IsPathNotFound()) {
    return At("create", created);
  }
  direct_ = created.ok() && file_->use_direct_io() &&
            file_->GetRequiredBufferAlignment() <= StagingBuffer::kAlignment;
  if (direct_) {
    return Status::OK();
  }
  // tmpfs and others know no O_DIRECT; it is an invalid argument to them.
  file_.reset();
  return OpenCached();
}

Status StagingFile::OpenCached() {
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
    const size_t whole = buffered_ - buffered_ % StagingBuffer::kAlignment;
    const Status status = Write(whole);
    if (!status.ok()) {
      return status;
    }
  }
  *room = buffer_->data() + buffered_;
  return Status::OK();
}

void StagingFile::Commit(size_t bytes) { buffered_ += bytes; }

Status StagingFile::Write(size_t bytes) {
  const Slice data(buffer_->data(), bytes);
  const rocksdb::IOStatus status =
      direct_ ? file_->PositionedAppend(data, written_, IOOptions(), nullptr)
              : file_->Append(data, IOOptions(), nullptr);
  if (status.ok() && cache_ == Cache::kThrough) {
    // Only begins to write; what goes wrong with it, the sync says.
    file_->RangeSync(written_, bytes, IOOptions(), nullptr)
        .PermitUncheckedError();
  }
  written_ += bytes;
  buffered_ -= bytes;
  memmove(buffer_->data(), buffer_->data() + bytes, buffered_);
  return At("write", status);
}

// The last, short block is written padded, then cut to its length.
Status StagingFile::WriteTail() {
  const uint64_t file_bytes = bytes();
  const size_t beyond = buffered_ % StagingBuffer::kAlignment;
  if (direct_ && beyond != 0) {
    const size_t padding = StagingBuffer::kAlignment - beyond;
    memset(buffer_->data() + buffered_, 0, padding);
    buffered_ += padding;
  }
  Status status = buffered_ == 0 ? Status::OK() : Write(buffered_);
  if (status.ok() && written_ != file_bytes) {
    status = At("write", file_->Truncate(file_bytes, IOOptions(), nullptr));
    written_ = file_bytes;
  }
  return status;
}

Status StagingFile::Finish(bool sync) {
  Status status = WriteTail();
  FaultPoint("StagingFile:Written");
  if (status.ok() && sync) {
    status = At("sync", file_->Fsync(IOOptions(), nullptr));
  }
  const Status closed = At("close", file_->Close(IOOptions(), nullptr));
  file_.reset();
  return status.ok() ? closed : status;
}

}  // namespace sstferry
