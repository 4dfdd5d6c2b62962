#include "pipeline/base/file_source.h"

#include "rocksdb/iostats_context.h"

namespace sstferry {

using rocksdb::IOOptions;
using rocksdb::Slice;
using rocksdb::Status;

FileSource::FileSource(std::string path, uint64_t size,
                       std::unique_ptr<rocksdb::FSRandomAccessFile> file,
                       EndState when_unreadable)
    : path_(std::move(path)),
      size_(size),
      file_(std::move(file)),
      when_unreadable_(when_unreadable) {}

Status FileSource::Failed(const Status& status, EndState when_unreadable,
                          const std::string& path) {
  const EndState state = EndStateOf(status);
  return WithContext(
      status, state == EndState::kInternal ? when_unreadable : state, path);
}

Status FileSource::Open(rocksdb::FileSystem* file_system,
                        const std::string& path,
                        std::unique_ptr<FileSource>* out,
                        EndState when_unreadable) {
  uint64_t size = 0;
  rocksdb::IOStatus status =
      file_system->GetFileSize(path, IOOptions(), &size, nullptr);
  std::unique_ptr<rocksdb::FSRandomAccessFile> file;
  if (status.ok()) {
    status = file_system->NewRandomAccessFile(path, rocksdb::FileOptions(),
                                              &file, nullptr);
  }
  if (!status.ok()) {
    return Failed(status, when_unreadable, path);
  }
  out->reset(new FileSource(path, size, std::move(file), when_unreadable));
  return Status::OK();
}

Status FileSource::Read(uint64_t offset, size_t n, std::string* scratch,
                        Slice* out) const {
  scratch->resize(n);
  const rocksdb::IOStatus status =
      file_->Read(offset, n, IOOptions(), out, scratch->data(), nullptr);
  if (!status.ok()) {
    return Failed(status, when_unreadable_, path_);
  }
  // As RocksDB's own reader counts.
  rocksdb::get_iostats_context()->bytes_read += out->size();
  if (out->size() != n) {
    return MakeStatus(EndState::kCorrupt,
                      path_ + ": expected " + std::to_string(n) +
                          " bytes at offset " + std::to_string(offset) +
                          ", found " + std::to_string(out->size()));
  }
  return Status::OK();
}

}  // namespace sstferry
