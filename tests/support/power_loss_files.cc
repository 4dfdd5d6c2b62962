#include "tests/support/power_loss_files.h"

namespace sstferry {
namespace {

using rocksdb::FSDirectory;
using rocksdb::FSRandomAccessFile;
using rocksdb::FSRandomRWFile;
using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;
using Id = DurableNames::Id;

constexpr uint64_t kEndOfFile = UINT64_MAX;

class WatchedFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  WatchedFile(std::unique_ptr<FSWritableFile> file, Id id,
              PowerLossFileSystem* disk)
      : FSWritableFileOwnerWrapper(std::move(file)), id_(id), disk_(disk) {}

  IOStatus Append(const Slice& data, const IOOptions& options,
                  IODebugContext* dbg) override {
    return disk_->Change(id_, PowerLossFileSystem::kNowhere, 0, [&] {
      return target()->Append(data, options, dbg);
    });
  }
  IOStatus Append(const Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo& info,
                  IODebugContext* dbg) override {
    return disk_->Change(id_, PowerLossFileSystem::kNowhere, 0, [&] {
      return target()->Append(data, options, info, dbg);
    });
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset,
                            const IOOptions& options,
                            IODebugContext* dbg) override {
    return disk_->Change(id_, offset, offset + data.size(), [&] {
      return target()->PositionedAppend(data, offset, options, dbg);
    });
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset,
                            const IOOptions& options,
                            const rocksdb::DataVerificationInfo& info,
                            IODebugContext* dbg) override {
    return disk_->Change(id_, offset, offset + data.size(), [&] {
      return target()->PositionedAppend(data, offset, options, info, dbg);
    });
  }
  IOStatus Truncate(uint64_t size, const IOOptions& options,
                    IODebugContext* dbg) override {
    return disk_->Change(id_, size, kEndOfFile, [&] {
      return target()->Truncate(size, options, dbg);
    });
  }
  IOStatus Close(const IOOptions& options, IODebugContext* dbg) override {
    return disk_->Change(id_, PowerLossFileSystem::kNowhere, 0,
                         [&] { return target()->Close(options, dbg); });
  }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    return disk_->SyncFile(id_);
  }
  IOStatus Fsync(const IOOptions&, IODebugContext*) override {
    return disk_->SyncFile(id_);
  }
  IOStatus RangeSync(uint64_t, uint64_t, const IOOptions&,
                     IODebugContext*) override {
    return IOStatus::OK();
  }

 private:
  const Id id_;
  PowerLossFileSystem* const disk_;
};

class WatchedRandomAccessFile
    : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  WatchedRandomAccessFile(std::unique_ptr<FSRandomAccessFile> file, Id id,
                          PowerLossFileSystem* disk)
      : FSRandomAccessFileOwnerWrapper(std::move(file)),
        id_(id),
        disk_(disk) {}

  IOStatus InvalidateCache(size_t, size_t) override {
    disk_->DropCache(id_);
    return IOStatus::OK();
  }

 private:
  const Id id_;
  PowerLossFileSystem* const disk_;
};

class WatchedRandomRWFile : public rocksdb::FSRandomRWFileOwnerWrapper {
 public:
  WatchedRandomRWFile(std::unique_ptr<FSRandomRWFile> file, Id id,
                      PowerLossFileSystem* disk)
      : FSRandomRWFileOwnerWrapper(std::move(file)), id_(id), disk_(disk) {}

  IOStatus Write(uint64_t offset, const Slice& data, const IOOptions& options,
                 IODebugContext* dbg) override {
    return disk_->Change(id_, offset, offset + data.size(), [&] {
      return FSRandomRWFileOwnerWrapper::Write(offset, data, options, dbg);
    });
  }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    return disk_->SyncFile(id_);
  }
  IOStatus Fsync(const IOOptions&, IODebugContext*) override {
    return disk_->SyncFile(id_);
  }

 private:
  const Id id_;
  PowerLossFileSystem* const disk_;
};

class WatchedDirectory : public FSDirectory {
 public:
  WatchedDirectory(Id id, PowerLossFileSystem* disk) : id_(id), disk_(disk) {}
  IOStatus Fsync(const IOOptions&, IODebugContext*) override {
    return disk_->SyncNames(id_);
  }
  IOStatus FsyncWithDirOptions(const IOOptions&, IODebugContext*,
                               const rocksdb::DirFsyncOptions&) override {
    return disk_->SyncNames(id_);
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();
  }

 private:
  const Id id_;
  PowerLossFileSystem* const disk_;
};

}  // namespace

std::unique_ptr<FSWritableFile> WatchFile(std::unique_ptr<FSWritableFile> file,
                                          Id id, PowerLossFileSystem* disk) {
  return std::make_unique<WatchedFile>(std::move(file), id, disk);
}

std::unique_ptr<FSRandomAccessFile> WatchRandomAccessFile(
    std::unique_ptr<FSRandomAccessFile> file, Id id,
    PowerLossFileSystem* disk) {
  return std::make_unique<WatchedRandomAccessFile>(std::move(file), id, disk);
}

std::unique_ptr<FSRandomRWFile> WatchRandomRWFile(
    std::unique_ptr<FSRandomRWFile> file, Id id, PowerLossFileSystem* disk) {
  return std::make_unique<WatchedRandomRWFile>(std::move(file), id, disk);
}

std::unique_ptr<FSDirectory> WatchDirectory(Id id, PowerLossFileSystem* disk) {
  return std::make_unique<WatchedDirectory>(id, disk);
}

}  // namespace sstferry
