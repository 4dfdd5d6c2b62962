#include "tests/support/faulty_file_system.h"

namespace sstferry {
namespace {

using rocksdb::FileOptions;
using rocksdb::FSDirectory;
using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

const char* NameOf(FileStep step) {
  static constexpr const char* kNames[] = {"create", "append", "sync",
                                           "rename", "link",   "syncdir",
                                           "read",   "truncate", "close"};
  return kNames[static_cast<int>(step)];
}

class FaultyFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  FaultyFile(std::unique_ptr<FSWritableFile> file, std::string path,
             FaultyFileSystem* faults)
      : FSWritableFileOwnerWrapper(std::move(file)),
        path_(std::move(path)),
        faults_(faults) {}
  using FSWritableFileOwnerWrapper::Append;
  IOStatus Append(const Slice& data, const IOOptions& options,
                  IODebugContext* dbg) override {
    const IOStatus status = faults_->Meet(FileStep::kAppend, path_);
    return status.ok() ? target()->Append(data, options, dbg) : status;
  }
  IOStatus Append(const Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo& info,
                  IODebugContext* dbg) override {
    const IOStatus status = faults_->Meet(FileStep::kAppend, path_);
    return status.ok() ? target()->Append(data, options, info, dbg) : status;
  }
  using FSWritableFileOwnerWrapper::PositionedAppend;
  IOStatus PositionedAppend(const Slice& data, uint64_t offset,
                            const IOOptions& options,
                            IODebugContext* dbg) override {
    const IOStatus status = faults_->Meet(FileStep::kAppend, path_);
    return status.ok() ? target()->PositionedAppend(data, offset, options, dbg)
                       : status;
  }
  IOStatus Truncate(uint64_t size, const IOOptions& options,
                    IODebugContext* dbg) override {
    const IOStatus status = faults_->Meet(FileStep::kTruncate, path_);
    return status.ok() ? target()->Truncate(size, options, dbg) : status;
  }
  IOStatus Close(const IOOptions& options, IODebugContext* dbg) override {
    const IOStatus status = faults_->Meet(FileStep::kClose, path_);
    const IOStatus closed = target()->Close(options, dbg);
    return status.ok() ? closed : status;
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* dbg) override {
    const IOStatus status = faults_->Meet(FileStep::kSync, path_);
    return status.ok() ? target()->Sync(options, dbg) : status;
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override {
    const IOStatus status = faults_->Meet(FileStep::kSync, path_);
    return status.ok() ? target()->Fsync(options, dbg) : status;
  }

 private:
  const std::string path_;
  FaultyFileSystem* const faults_;
};

class FaultyRandomFile : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  FaultyRandomFile(std::unique_ptr<rocksdb::FSRandomAccessFile> file,
                   std::string path, FaultyFileSystem* faults)
      : FSRandomAccessFileOwnerWrapper(std::move(file)),
        path_(std::move(path)),
        faults_(faults) {}
  IOStatus Read(uint64_t offset, size_t n, const IOOptions& options,
                Slice* result, char* scratch,
                IODebugContext* dbg) const override {
    const IOStatus status = faults_->Meet(FileStep::kRead, path_);
    return status.ok() ? FSRandomAccessFileOwnerWrapper::Read(
                             offset, n, options, result, scratch, dbg)
                       : status;
  }

 private:
  const std::string path_;
  FaultyFileSystem* const faults_;
};

// A file that is written at random offsets. Only its syncs can fail.
class FaultyPart : public rocksdb::FSRandomRWFileOwnerWrapper {
 public:
  FaultyPart(std::unique_ptr<rocksdb::FSRandomRWFile> file, std::string path,
             FaultyFileSystem* faults)
      : FSRandomRWFileOwnerWrapper(std::move(file)),
        path_(std::move(path)),
        faults_(faults) {}
  IOStatus Sync(const IOOptions& options, IODebugContext* dbg) override {
    const IOStatus status = faults_->Meet(FileStep::kSync, path_);
    return status.ok() ? FSRandomRWFileOwnerWrapper::Sync(options, dbg)
                       : status;
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override {
    const IOStatus status = faults_->Meet(FileStep::kSync, path_);
    return status.ok() ? FSRandomRWFileOwnerWrapper::Fsync(options, dbg)
                       : status;
  }

 private:
  const std::string path_;
  FaultyFileSystem* const faults_;
};

class FaultyDirectory : public FSDirectory {
 public:
  FaultyDirectory(std::unique_ptr<FSDirectory> base, std::string path,
                  FaultyFileSystem* faults)
      : base_(std::move(base)), path_(std::move(path)), faults_(faults) {}
  IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override {
    const IOStatus status = faults_->Meet(FileStep::kSyncDir, path_);
    return status.ok() ? base_->Fsync(options, dbg) : status;
  }
  IOStatus FsyncWithDirOptions(
      const IOOptions& options, IODebugContext* dbg,
      const rocksdb::DirFsyncOptions& how) override {
    const IOStatus status = faults_->Meet(FileStep::kSyncDir, path_);
    return status.ok() ? base_->FsyncWithDirOptions(options, dbg, how)
                       : status;
  }
  IOStatus Close(const IOOptions& options, IODebugContext* dbg) override {
    return base_->Close(options, dbg);
  }

 private:
  const std::unique_ptr<FSDirectory> base_;
  const std::string path_;
  FaultyFileSystem* const faults_;
};

}  // namespace

IOStatus DiskFull() { return IOStatus::NoSpace("No space left on device"); }
IOStatus DiskBroken() { return IOStatus::IOError("Input/output error"); }

FaultyFileSystem::FaultyFileSystem(std::shared_ptr<rocksdb::FileSystem> base)
    : SyncWatchingFileSystem(std::move(base)) {}

void FaultyFileSystem::FailAt(FileStep step, uint64_t nth,
                              const IOStatus& status, const std::string& part,
                              bool for_good) {
  std::lock_guard<std::mutex> lock(mu_);
  // Not a temporary: GCC 14 would give a false warning about its string.
  const Fault fault{step, nth, status, part, for_good};
  faults_.push_back(fault);
}

void FaultyFileSystem::Heal() {
  std::lock_guard<std::mutex> lock(mu_);
  faults_.clear();
}

void FaultyFileSystem::OnStep(
    std::function<void(FileStep, const std::string& path)> hook) {
  on_step_ = std::move(hook);
}

void FaultyFileSystem::SetFreeSpace(uint64_t bytes) {
  std::lock_guard<std::mutex> lock(mu_);
  free_bytes_ = bytes;
}

IOStatus FaultyFileSystem::GetFreeSpace(const std::string& path,
                                        const IOOptions& options,
                                        uint64_t* free_bytes,
                                        IODebugContext* dbg) {
  {
    std::lock_guard<std::mutex> lock(mu_);
    if (free_bytes_.has_value()) {
      *free_bytes = *free_bytes_;
      return IOStatus::OK();
    }
  }
  return target()->GetFreeSpace(path, options, free_bytes, dbg);
}

uint64_t FaultyFileSystem::count(FileStep step, const std::string& part) const {
  std::lock_guard<std::mutex> lock(mu_);
  uint64_t found = 0;
  for (const auto& [met, path] : met_) {
    found += met == step && path.find(part) != std::string::npos;
  }
  return found;
}

std::vector<std::string> FaultyFileSystem::log() const {
  std::lock_guard<std::mutex> lock(mu_);
  std::vector<std::string> lines;
  for (const auto& [met, path] : met_) {
    if (met != FileStep::kAppend && met != FileStep::kRead &&
        met != FileStep::kTruncate && met != FileStep::kClose) {
      lines.push_back(std::string(NameOf(met)) + " " + path);
    }
  }
  return lines;
}

IOStatus FaultyFileSystem::Meet(FileStep step, const std::string& path) {
  if (on_step_) {
    on_step_(step, path);
  }
  std::lock_guard<std::mutex> lock(mu_);
  met_.emplace_back(step, path);
  for (Fault& fault : faults_) {
    if (fault.step != step || path.find(fault.part) == std::string::npos) {
      continue;
    }
    const bool due = fault.left == 1 || (fault.left == 0 && fault.for_good);
    fault.left -= fault.left > 0;
    if (due) {
      return fault.status;
    }
  }
  return IOStatus::OK();
}

IOStatus FaultyFileSystem::NewWritableFile(
    const std::string& name, const FileOptions& options,
    std::unique_ptr<FSWritableFile>* file, IODebugContext* dbg) {
  IOStatus status = Meet(FileStep::kCreate, name);
  if (status.ok()) {
    status = target()->NewWritableFile(name, options, file, dbg);
  }
  if (status.ok()) {
    *file = std::make_unique<FaultyFile>(std::move(*file), name, this);
  }
  return status;
}

IOStatus FaultyFileSystem::ReopenWritableFile(
    const std::string& name, const FileOptions& options,
    std::unique_ptr<FSWritableFile>* file, IODebugContext* dbg) {
  const IOStatus status =
      target()->ReopenWritableFile(name, options, file, dbg);
  if (status.ok()) {
    *file = std::make_unique<FaultyFile>(std::move(*file), name, this);
  }
  return status;
}

IOStatus FaultyFileSystem::NewRandomAccessFile(
    const std::string& name, const FileOptions& options,
    std::unique_ptr<rocksdb::FSRandomAccessFile>* file, IODebugContext* dbg) {
  const IOStatus status =
      target()->NewRandomAccessFile(name, options, file, dbg);
  if (status.ok()) {
    *file = std::make_unique<FaultyRandomFile>(std::move(*file), name, this);
  }
  return status;
}

IOStatus FaultyFileSystem::NewRandomRWFile(
    const std::string& name, const FileOptions& options,
    std::unique_ptr<rocksdb::FSRandomRWFile>* file, IODebugContext* dbg) {
  const IOStatus status = target()->NewRandomRWFile(name, options, file, dbg);
  if (status.ok()) {
    *file = std::make_unique<FaultyPart>(std::move(*file), name, this);
  }
  return status;
}

IOStatus FaultyFileSystem::NewDirectory(
    const std::string& name, const IOOptions& options,
    std::unique_ptr<FSDirectory>* directory, IODebugContext* dbg) {
  const IOStatus status =
      target()->NewDirectory(name, options, directory, dbg);
  if (status.ok()) {
    *directory =
        std::make_unique<FaultyDirectory>(std::move(*directory), name, this);
  }
  return status;
}

IOStatus FaultyFileSystem::Truncate(const std::string& name, size_t size,
                                    const IOOptions& options,
                                    IODebugContext* dbg) {
  const IOStatus status = Meet(FileStep::kTruncate, name);
  return status.ok() ? target()->Truncate(name, size, options, dbg) : status;
}

IOStatus FaultyFileSystem::RenameFile(const std::string& from,
                                      const std::string& to,
                                      const IOOptions& options,
                                      IODebugContext* dbg) {
  const IOStatus status = Meet(FileStep::kRename, to);
  return status.ok() ? target()->RenameFile(from, to, options, dbg) : status;
}

IOStatus FaultyFileSystem::LinkFile(const std::string& from,
                                    const std::string& to,
                                    const IOOptions& options,
                                    IODebugContext* dbg) {
  const IOStatus status = Meet(FileStep::kLink, to);
  return status.ok() ? target()->LinkFile(from, to, options, dbg) : status;
}

}  // namespace sstferry
