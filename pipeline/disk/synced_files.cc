#include "pipeline/disk/synced_files.h"

#include <mutex>
#include <set>
#include <string>

#include "pipeline/base/rocksdb_compat.h"

namespace sstferry {
namespace {

using rocksdb::FileOptions;
using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

// The names of the files that are synced completely.
//
// Threads: any.
class CleanNames {
 public:
  bool Has(const std::string& name) const {
    std::lock_guard<std::mutex> lock(mu_);
    return names_.count(name) != 0;
  }
  void Set(const std::string& name, bool clean) {
    std::lock_guard<std::mutex> lock(mu_);
    if (clean) {
      names_.insert(name);
    } else {
      names_.erase(name);
    }
  }
  void Copy(const std::string& from, const std::string& to) {
    Set(to, Has(from));
  }

 private:
  mutable std::mutex mu_;
  std::set<std::string> names_;  // guarded by mu_
};

// A file that records its writes and syncs in a CleanNames.
class SyncedFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  SyncedFile(std::unique_ptr<FSWritableFile> file, std::string name,
             std::shared_ptr<CleanNames> clean)
      : FSWritableFileOwnerWrapper(std::move(file)),
        name_(std::move(name)),
        clean_(std::move(clean)) {}

  using FSWritableFileOwnerWrapper::Append;
  using FSWritableFileOwnerWrapper::PositionedAppend;
  IOStatus Append(const Slice& data, const IOOptions& options,
                  IODebugContext* dbg) override {
    return Dirty(target()->Append(data, options, dbg));
  }
  IOStatus Append(const Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo& info,
                  IODebugContext* dbg) override {
    return Dirty(target()->Append(data, options, info, dbg));
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset,
                            const IOOptions& options,
                            IODebugContext* dbg) override {
    return Dirty(target()->PositionedAppend(data, offset, options, dbg));
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset,
                            const IOOptions& options,
                            const rocksdb::DataVerificationInfo& info,
                            IODebugContext* dbg) override {
    return Dirty(target()->PositionedAppend(data, offset, options, info, dbg));
  }
  IOStatus Truncate(uint64_t size, const IOOptions& options,
                    IODebugContext* dbg) override {
    return Dirty(target()->Truncate(size, options, dbg));
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* dbg) override {
    return clean_->Has(name_) ? IOStatus::OK()
                              : Clean(target()->Sync(options, dbg));
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override {
    return clean_->Has(name_) ? IOStatus::OK()
                              : Clean(target()->Fsync(options, dbg));
  }

 private:
  // Records that the file is not synced. Does so even if the write failed,
  // because some bytes may have been written.
  IOStatus Dirty(IOStatus status) {
    clean_->Set(name_, false);
    return status;
  }
  IOStatus Clean(IOStatus status) {
    clean_->Set(name_, status.ok());
    return status;
  }

  const std::string name_;
  const std::shared_ptr<CleanNames> clean_;
};

class SyncedFilesFileSystem : public SyncWatchingFileSystem {
 public:
  using SyncWatchingFileSystem::SyncWatchingFileSystem;
  const char* Name() const override { return "sstferry.SyncedFiles"; }

  IOStatus NewWritableFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* file,
                           IODebugContext* dbg) override {
    clean_->Set(name, false);
    return Watch(target()->NewWritableFile(name, options, file, dbg), name,
                 file);
  }
  IOStatus ReopenWritableFile(const std::string& name,
                              const FileOptions& options,
                              std::unique_ptr<FSWritableFile>* file,
                              IODebugContext* dbg) override {
    return Watch(target()->ReopenWritableFile(name, options, file, dbg), name,
                 file);
  }
  IOStatus ReuseWritableFile(const std::string& name, const std::string& old,
                             const FileOptions& options,
                             std::unique_ptr<FSWritableFile>* file,
                             IODebugContext* dbg) override {
    clean_->Set(old, false);
    clean_->Set(name, false);
    return Watch(target()->ReuseWritableFile(name, old, options, file, dbg),
                 name, file);
  }
  IOStatus NewRandomRWFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSRandomRWFile>* file,
                           IODebugContext* dbg) override {
    clean_->Set(name, false);
    return target()->NewRandomRWFile(name, options, file, dbg);
  }
  IOStatus LinkFile(const std::string& from, const std::string& to,
                    const IOOptions& options, IODebugContext* dbg) override {
    const IOStatus status = target()->LinkFile(from, to, options, dbg);
    if (status.ok()) {
      clean_->Copy(from, to);
    }
    return status;
  }
  IOStatus RenameFile(const std::string& from, const std::string& to,
                      const IOOptions& options, IODebugContext* dbg) override {
    const IOStatus status = target()->RenameFile(from, to, options, dbg);
    if (status.ok()) {
      clean_->Copy(from, to);
      clean_->Set(from, false);
    }
    return status;
  }
  IOStatus DeleteFile(const std::string& name, const IOOptions& options,
                      IODebugContext* dbg) override {
    clean_->Set(name, false);
    return target()->DeleteFile(name, options, dbg);
  }

 private:
  IOStatus Watch(IOStatus status, const std::string& name,
                 std::unique_ptr<FSWritableFile>* file) {
    if (status.ok()) {
      *file = std::make_unique<SyncedFile>(std::move(*file), name, clean_);
    }
    return status;
  }

  const std::shared_ptr<CleanNames> clean_ = std::make_shared<CleanNames>();
};

}  // namespace

std::shared_ptr<rocksdb::FileSystem> MakeSyncedFilesFileSystem(
    std::shared_ptr<rocksdb::FileSystem> base) {
  return std::make_shared<SyncedFilesFileSystem>(std::move(base));
}

}  // namespace sstferry
