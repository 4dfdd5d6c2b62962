#include "pipeline/target/staging_file.h"

#include "format/end_state.h"

namespace sstferry {

using rocksdb::IOOptions;
using rocksdb::Slice;
using rocksdb::Status;

StagingFile::StagingFile(rocksdb::FileSystem* file_system, std::string path)
    : file_system_(file_system), path_(std::move(path)) {}

Status StagingFile::Open() {
  const Status status = file_system_->NewWritableFile(
      path_, rocksdb::FileOptions(), &file_, nullptr);
  return WithContext(status, EndStateOf(status), "create " + path_);
}

Status StagingFile::Append(const Slice& data) {
  const Status status = file_->Append(data, IOOptions(), nullptr);
  bytes_ += data.size();
  return WithContext(status, EndStateOf(status), "write " + path_);
}

Status StagingFile::Finish(bool sync) {
  Status status;
  if (sync) {
    status = file_->Fsync(IOOptions(), nullptr);
    status = WithContext(status, EndStateOf(status), "sync " + path_);
  }
  const Status closed = file_->Close(IOOptions(), nullptr);
  file_.reset();
  return status.ok() ? WithContext(closed, EndStateOf(closed),
                                   "close " + path_)
                     : status;
}

}  // namespace sstferry
