#include "pipeline/disk/deferred_sync.h"

#include <utility>

#include "pipeline/disk/durable.h"

namespace sstferry {
namespace {

using rocksdb::FileOptions;
using rocksdb::FSDirectory;
using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

// A new file whose syncs do nothing.
class DeferredFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  using FSWritableFileOwnerWrapper::FSWritableFileOwnerWrapper;
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();
  }
  IOStatus Fsync(const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();
  }
  IOStatus RangeSync(uint64_t, uint64_t, const IOOptions&,
                     IODebugContext*) override {
    return IOStatus::OK();
  }
};

// An existing file whose syncs do nothing.
class DeferredPart : public rocksdb::FSRandomRWFileOwnerWrapper {
 public:
  using FSRandomRWFileOwnerWrapper::FSRandomRWFileOwnerWrapper;
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();
  }
  IOStatus Fsync(const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();
  }
};

// A directory whose syncs do nothing.
class DeferredDirectory : public FSDirectory {
 public:
  IOStatus Fsync(const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();
  }
  IOStatus FsyncWithDirOptions(const IOOptions&, IODebugContext*,
                               const rocksdb::DirFsyncOptions&) override {
    return IOStatus::OK();
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();
  }
};

class DeferredSyncFileSystem : public SyncWatchingFileSystem {
 public:
  using SyncWatchingFileSystem::SyncWatchingFileSystem;
  const char* Name() const override { return "sstferry.DeferredSync"; }

  IOStatus NewWritableFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* file,
                           IODebugContext* dbg) override {
    return Defer(target()->NewWritableFile(name, options, file, dbg), file);
  }
  IOStatus ReopenWritableFile(const std::string& name,
                              const FileOptions& options,
                              std::unique_ptr<FSWritableFile>* file,
                              IODebugContext* dbg) override {
    return Defer(target()->ReopenWritableFile(name, options, file, dbg), file);
  }
  IOStatus ReuseWritableFile(const std::string& name, const std::string& old,
                             const FileOptions& options,
                             std::unique_ptr<FSWritableFile>* file,
                             IODebugContext* dbg) override {
    return Defer(target()->ReuseWritableFile(name, old, options, file, dbg),
                 file);
  }
  IOStatus NewDirectory(const std::string&, const IOOptions&,
                        std::unique_ptr<FSDirectory>* directory,
                        IODebugContext*) override {
    *directory = std::make_unique<DeferredDirectory>();
    return IOStatus::OK();
  }

 private:
  static IOStatus Defer(IOStatus status,
                        std::unique_ptr<FSWritableFile>* file) {
    if (status.ok()) {
      *file = std::make_unique<DeferredFile>(std::move(*file));
    }
    return status;
  }
};

}  // namespace

std::shared_ptr<rocksdb::FileSystem> MakeDeferredSyncFileSystem(
    std::shared_ptr<rocksdb::FileSystem> base) {
  return std::make_shared<DeferredSyncFileSystem>(std::move(base));
}

rocksdb::Status SyncBatch::Run() {
  const std::set<std::string> files = std::exchange(files_, {});
  const std::set<std::string> dirs = std::exchange(dirs_, {});
  return SyncAll(target(), files, dirs);
}

IOStatus SyncBatch::NewWritableFile(const std::string& name,
                                    const FileOptions& options,
                                    std::unique_ptr<FSWritableFile>* file,
                                    IODebugContext* dbg) {
  IOStatus status = target()->NewWritableFile(name, options, file, dbg);
  if (status.ok()) {
    files_.insert(name);
    *file = std::make_unique<DeferredFile>(std::move(*file));
  }
  return status;
}

IOStatus SyncBatch::NewRandomRWFile(
    const std::string& name, const FileOptions& options,
    std::unique_ptr<rocksdb::FSRandomRWFile>* file, IODebugContext* dbg) {
  IOStatus status = target()->NewRandomRWFile(name, options, file, dbg);
  if (status.ok()) {
    files_.insert(name);
    *file = std::make_unique<DeferredPart>(std::move(*file));
  }
  return status;
}

IOStatus SyncBatch::NewDirectory(const std::string& name, const IOOptions&,
                                 std::unique_ptr<FSDirectory>* directory,
                                 IODebugContext*) {
  dirs_.insert(name);
  *directory = std::make_unique<DeferredDirectory>();
  return IOStatus::OK();
}

IOStatus SyncBatch::RenameFile(const std::string& from, const std::string& to,
                               const IOOptions& options, IODebugContext* dbg) {
  IOStatus status = target()->RenameFile(from, to, options, dbg);
  if (status.ok() && files_.erase(from) != 0) {
    files_.insert(to);
  }
  return status;
}

}  // namespace sstferry
