#include "pipeline/base/file_source.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "pipeline/base/open_file.h"
#include "rocksdb/iostats_context.h"

namespace sstferry {

using rocksdb::IOOptions;
using rocksdb::Slice;
using rocksdb::Status;

FileSource::FileSource(std::string path, uint64_t size,
                       std::unique_ptr<rocksdb::FSRandomAccessFile> file,
                       Descriptor descriptor, EndState when_unreadable)
    : path_(std::move(path)),
      size_(size),
      file_(std::move(file)),
      descriptor_(std::move(descriptor)),
      when_unreadable_(when_unreadable),
      owner_(geteuid()) {}

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
  // Refuse a FIFO, which RocksDB would open, and then wait for a writer.
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return MakeStatus(when_unreadable,
                      path + ": expected a regular file, found something "
                             "else; remove it");
  }
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
  out->reset(new FileSource(path, size, std::move(file), Descriptor(),
                            when_unreadable));
  return Status::OK();
}

Status FileSource::OpenFromDisk(rocksdb::FileSystem* file_system,
                                const std::string& path,
                                std::unique_ptr<FileSource>* out) {
  RETURN_IF_ERROR(Open(file_system, path, out));
  (*out)->file_->InvalidateCache(0, 0).PermitUncheckedError();
  return Status::OK();
}

Status FileSource::OpenForeign(rocksdb::FileSystem* file_system,
                               const std::string& path,
                               std::unique_ptr<FileSource>* out,
                               EndState when_unreadable) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path real = fs::canonical(fs::path(path).parent_path(), error);
  Descriptor opened;
  const Status status =
      error ? Status::OK()
            : sstferry::OpenForeign((real / fs::path(path).filename()).string(),
                                    &opened);
  if (!status.ok()) {
    return MakeStatus(when_unreadable, MessageOf(status));
  }
  struct stat info = {};
  if (opened.is_open() && fstat(opened.get(), &info) != 0) {
    return ErrnoStatus(when_unreadable, "cannot look at", path, errno);
  }
  const uid_t owner = opened.is_open() ? info.st_uid : geteuid();
  if (file_system != rocksdb::FileSystem::Default().get()) {
    RETURN_IF_ERROR(Open(file_system, path, out, when_unreadable));
  } else if (opened.is_open()) {
    out->reset(new FileSource(path, static_cast<uint64_t>(info.st_size),
                              nullptr, std::move(opened), when_unreadable));
  } else {
    return Failed(rocksdb::IOStatus::PathNotFound("No such file or directory"),
                  when_unreadable, path);
  }
  (*out)->owner_ = owner;
  return Status::OK();
}

Status FileSource::Read(uint64_t offset, size_t n, std::string* scratch,
                        Slice* out) const {
  scratch->resize(n);
  if (descriptor_.is_open()) {
    size_t have = 0;
    ssize_t done = 1;
    while (have < n && done != 0) {
      done = pread(descriptor_.get(), scratch->data() + have, n - have,
                   static_cast<off_t>(offset + have));
      if (done < 0 && errno != EINTR) {
        return ErrnoStatus(when_unreadable_, "cannot read", path_, errno);
      }
      have += done > 0 ? static_cast<size_t>(done) : 0;
    }
    *out = Slice(scratch->data(), have);
    return Complete(offset, n, *out);
  }
  const rocksdb::IOStatus status =
      file_->Read(offset, n, IOOptions(), out, scratch->data(), nullptr);
  if (!status.ok()) {
    return Failed(status, when_unreadable_, path_);
  }
  return Complete(offset, n, *out);
}

Status FileSource::Complete(uint64_t offset, size_t n,
                            const Slice& found) const {
  // Update the counter that RocksDB's own file reader updates.
  rocksdb::get_iostats_context()->bytes_read += found.size();
  return found.size() == n
             ? Status::OK()
             : MakeStatus(EndState::kCorrupt,
                          path_ + ": expected " + std::to_string(n) +
                              " bytes at offset " + std::to_string(offset) +
                              ", found " + std::to_string(found.size()));
}

Status ReadForeignFile(rocksdb::FileSystem* file_system,
                       const std::string& path, uint64_t max_bytes,
                       std::string* text, EndState when_unreadable,
                       uid_t* owner) {
  text->clear();
  std::unique_ptr<FileSource> source;
  RETURN_IF_ERROR(FileSource::OpenForeign(file_system, path, &source,
                                          when_unreadable));
  if (owner != nullptr) {
    *owner = source->owner();
  }
  if (source->size() > max_bytes) {
    return MakeStatus(EndState::kCorrupt,
                      path + ": expected at most " +
                          std::to_string(max_bytes) + " bytes, found " +
                          std::to_string(source->size()));
  }
  std::string scratch;
  Slice found;
  if (source->size() > 0) {  // some file systems refuse to read 0 bytes
    RETURN_IF_ERROR(source->Read(0, source->size(), &scratch, &found));
  }
  text->assign(found.data(), found.size());
  return Status::OK();
}

}  // namespace sstferry
