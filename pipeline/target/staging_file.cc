#include "pipeline/target/staging_file.h"

#include <algorithm>
#include <cstring>

#include "format/end_state.h"

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
  return At("create", file_system_->NewWritableFile(
                          path_, rocksdb::FileOptions(), &file_, nullptr));
}

Status StagingFile::Append(const Slice& data) {
  bytes_ += data.size();
  if (!direct_) {
    return At("write", file_->Append(data, IOOptions(), nullptr));
  }
  Slice rest = data;
  while (!rest.empty()) {
    const size_t bytes =
        std::min(rest.size(), StagingBuffer::kBytes - buffered_);
    memcpy(buffer_->data() + buffered_, rest.data(), bytes);
    buffered_ += bytes;
    rest.remove_prefix(bytes);
    if (buffered_ == StagingBuffer::kBytes) {
      const Status status = WriteBuffer();
      if (!status.ok()) {
        return status;
      }
    }
  }
  return Status::OK();
}

Status StagingFile::WriteBuffer() {
  const Slice data(buffer_->data(), buffered_);
  const uint64_t offset = written_;
  written_ += buffered_;
  buffered_ = 0;
  return At("write",
            file_->PositionedAppend(data, offset, IOOptions(), nullptr));
}

// The last, short block is written padded, then cut to its length.
Status StagingFile::WriteTail() {
  if (!direct_ || buffered_ == 0) {
    return Status::OK();
  }
  const size_t padded = (buffered_ + StagingBuffer::kAlignment - 1) /
                        StagingBuffer::kAlignment * StagingBuffer::kAlignment;
  memset(buffer_->data() + buffered_, 0, padded - buffered_);
  buffered_ = padded;
  const Status status = WriteBuffer();
  return status.ok()
             ? At("write", file_->Truncate(bytes_, IOOptions(), nullptr))
             : status;
}

Status StagingFile::Finish(bool sync) {
  Status status = WriteTail();
  if (status.ok() && sync) {
    status = At("sync", file_->Fsync(IOOptions(), nullptr));
  }
  const Status closed = At("close", file_->Close(IOOptions(), nullptr));
  file_.reset();
  return status.ok() ? closed : status;
}

}  // namespace sstferry
