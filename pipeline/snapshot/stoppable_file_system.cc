#include "pipeline/snapshot/stoppable_file_system.h"

#include "pipeline/base/descriptor_shortage.h"

namespace sstferry {
namespace {

using rocksdb::FileOptions;
using rocksdb::FSRandomAccessFile;
using rocksdb::FSSequentialFile;
using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;
using Stopped = std::function<bool()>;

// Returns a plain IOError. When RocksDB opens a database, it asserts in some
// places that a file system returns no other error.
IOStatus StoppedStatus() {
  return IOStatus::IOError("stopped on request");
}

class StoppableRandomFile : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  StoppableRandomFile(std::unique_ptr<FSRandomAccessFile> file,
                      std::string name, uint64_t size, const Stopped* stopped,
                      std::atomic<uint64_t>* read_bytes)
      : FSRandomAccessFileOwnerWrapper(std::move(file)),
        name_(std::move(name)),
        size_(size),
        stopped_(stopped),
        read_bytes_(read_bytes) {}
  IOStatus Read(uint64_t offset, size_t n, const IOOptions& options,
                Slice* result, char* scratch,
                IODebugContext* dbg) const override {
    if ((*stopped_)()) {
      return StoppedStatus();
    }
    const IOStatus status = FSRandomAccessFileOwnerWrapper::Read(
        offset, n, options, result, scratch, dbg);
    if (!status.ok()) {
      return status;
    }
    // RocksDB's readahead asserts that a read returns fewer bytes than
    // requested only at the end of the file.
    if (result->size() < n && offset + result->size() < size_) {
      return IOStatus::IOError(
          name_, "truncated while it was read: expected " +
                     std::to_string(size_) + " bytes, found " +
                     std::to_string(offset + result->size()));
    }
    if (read_bytes_ != nullptr) {
      read_bytes_->fetch_add(result->size(), std::memory_order_relaxed);
    }
    return status;
  }

 private:
  const std::string name_;
  const uint64_t size_;  // size when the file was opened
  const Stopped* const stopped_;
  std::atomic<uint64_t>* const read_bytes_;
};

class StoppableSequentialFile : public rocksdb::FSSequentialFileOwnerWrapper {
 public:
  StoppableSequentialFile(std::unique_ptr<FSSequentialFile> file,
                          const Stopped* stopped,
                          std::atomic<uint64_t>* read_bytes)
      : FSSequentialFileOwnerWrapper(std::move(file)),
        stopped_(stopped),
        read_bytes_(read_bytes) {}
  IOStatus Read(size_t n, const IOOptions& options, Slice* result,
                char* scratch, IODebugContext* dbg) override {
    if ((*stopped_)()) {
      return StoppedStatus();
    }
    const IOStatus status = FSSequentialFileOwnerWrapper::Read(
        n, options, result, scratch, dbg);
    if (status.ok() && read_bytes_ != nullptr) {
      read_bytes_->fetch_add(result->size(), std::memory_order_relaxed);
    }
    return status;
  }

 private:
  const Stopped* const stopped_;
  std::atomic<uint64_t>* const read_bytes_;
};

class StoppableWritableFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  StoppableWritableFile(std::unique_ptr<FSWritableFile> file,
                        const Stopped* stopped)
      : FSWritableFileOwnerWrapper(std::move(file)), stopped_(stopped) {}
  IOStatus Append(const Slice& data, const IOOptions& options,
                  IODebugContext* dbg) override {
    return (*stopped_)() ? StoppedStatus()
                         : FSWritableFileOwnerWrapper::Append(data, options,
                                                              dbg);
  }
  IOStatus Append(const Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo& info,
                  IODebugContext* dbg) override {
    return (*stopped_)() ? StoppedStatus()
                         : FSWritableFileOwnerWrapper::Append(data, options,
                                                              info, dbg);
  }

 private:
  const Stopped* const stopped_;
};

class NoLock : public rocksdb::FileLock {};

class StoppableFileSystem : public rocksdb::FileSystemWrapper {
 public:
  StoppableFileSystem(std::shared_ptr<rocksdb::FileSystem> base,
                      Stopped stopped, std::atomic<uint64_t>* read_bytes)
      : FileSystemWrapper(std::move(base)),
        stopped_(std::move(stopped)),
        read_bytes_(read_bytes) {}

  const char* Name() const override { return "sstferry.Stoppable"; }

  // Does not lock, because nobody else opens a private copy. If DB::Open()
  // throws (for example because it cannot start a thread), RocksDB remembers
  // the locked file's name until the process ends. The path of a private
  // directory contains the number of a descriptor, so a later private directory
  // may have the same path. A real lock would then fail.
  IOStatus LockFile(const std::string&, const rocksdb::IOOptions&,
                    rocksdb::FileLock** lock,
                    rocksdb::IODebugContext*) override {
    *lock = new NoLock;
    return IOStatus::OK();
  }
  IOStatus UnlockFile(rocksdb::FileLock* lock, const rocksdb::IOOptions&,
                      rocksdb::IODebugContext*) override {
    delete static_cast<NoLock*>(lock);
    return IOStatus::OK();
  }

  IOStatus NewRandomAccessFile(const std::string& name,
                               const FileOptions& options,
                               std::unique_ptr<FSRandomAccessFile>* file,
                               IODebugContext* dbg) override {
    uint64_t size = 0;
    IOStatus status =
        Opened(target()->NewRandomAccessFile(name, options, file, dbg));
    if (status.ok()) {
      status = target()->GetFileSize(name, options.io_options, &size, dbg);
    }
    if (status.ok()) {
      *file = std::make_unique<StoppableRandomFile>(
          std::move(*file), name, size, &stopped_, read_bytes_);
    }
    return status;
  }
  IOStatus NewSequentialFile(const std::string& name,
                             const FileOptions& options,
                             std::unique_ptr<FSSequentialFile>* file,
                             IODebugContext* dbg) override {
    const IOStatus status =
        Opened(target()->NewSequentialFile(name, options, file, dbg));
    if (status.ok()) {
      *file = std::make_unique<StoppableSequentialFile>(
          std::move(*file), &stopped_, read_bytes_);
    }
    return status;
  }
  IOStatus NewWritableFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* file,
                           IODebugContext* dbg) override {
    return Wrap<StoppableWritableFile>(
        Opened(target()->NewWritableFile(name, options, file, dbg)), file);
  }

 private:
  static IOStatus Opened(IOStatus status) {
    if (!status.ok()) {
      LookForDescriptorShortage();
    }
    return status;
  }
  template <typename Wrapper, typename File>
  IOStatus Wrap(IOStatus status, std::unique_ptr<File>* file) const {
    if (status.ok()) {
      *file = std::make_unique<Wrapper>(std::move(*file), &stopped_);
    }
    return status;
  }

  const Stopped stopped_;
  std::atomic<uint64_t>* const read_bytes_;
};

}  // namespace

std::shared_ptr<rocksdb::FileSystem> MakeStoppableFileSystem(
    std::shared_ptr<rocksdb::FileSystem> base, Stopped stopped,
    std::atomic<uint64_t>* read_bytes) {
  return std::make_shared<StoppableFileSystem>(
      std::move(base), std::move(stopped), read_bytes);
}

}  // namespace sstferry
