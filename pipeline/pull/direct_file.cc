#include "pipeline/pull/direct_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "pipeline/base/full_disk.h"
#include "sstferry/descriptor.h"

namespace sstferry {
namespace {

using rocksdb::FileOptions;
using rocksdb::FSRandomRWFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

IOStatus Failed(const std::string& path, int error) {
  return IsOutOfRoom(error) ? IOStatus::NoSpace(path, strerror(error))
                            : IOStatus::IOError(path, strerror(error));
}

// A file that is written directly. Threads: one.
class DirectFile : public FSRandomRWFile {
 public:
  DirectFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  ~DirectFile() override {
    if (fd_ >= 0) close(fd_);
  }

  IOStatus Write(uint64_t offset, const Slice& data, const IOOptions&,
                 IODebugContext*) override {
    size_t done = 0;
    while (done < data.size()) {
      const ssize_t n = pwrite(fd_, data.data() + done, data.size() - done,
                               static_cast<off_t>(offset + done));
      if (n < 0 && errno != EINTR) {
        return Failed(path_, errno);
      }
      if (n == 0) {
        return IOStatus::IOError(path_, "the file system wrote no byte");
      }
      done += n > 0 ? static_cast<size_t>(n) : 0;
    }
    return IOStatus::OK();
  }
  IOStatus Read(uint64_t, size_t, const IOOptions&, Slice*, char*,
                IODebugContext*) const override {
    return IOStatus::NotSupported(path_, "is open for writes only");
  }
  IOStatus Flush(const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();
  }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    return fdatasync(fd_) == 0 ? IOStatus::OK() : Failed(path_, errno);
  }
  IOStatus Fsync(const IOOptions&, IODebugContext*) override {
    return fsync(fd_) == 0 ? IOStatus::OK() : Failed(path_, errno);
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override {
    const int fd = std::exchange(fd_, -1);
    return close(fd) == 0 ? IOStatus::OK() : Failed(path_, errno);
  }

 private:
  const std::string path_;
  int fd_;
};

class DirectFileSystem : public rocksdb::FileSystemWrapper {
 public:
  using FileSystemWrapper::FileSystemWrapper;
  const char* Name() const override { return "sstferry.Direct"; }

  IOStatus NewRandomRWFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<FSRandomRWFile>* file,
                           IODebugContext* dbg) override {
    const int fd =
        options.use_direct_writes
            ? OpenPath(name, O_WRONLY | O_DIRECT).Release()
            : -1;
    if (fd < 0) {
      return target()->NewRandomRWFile(name, options, file, dbg);
    }
    *file = std::make_unique<DirectFile>(name, fd);
    return IOStatus::OK();
  }
};

}  // namespace

std::shared_ptr<rocksdb::FileSystem> MakeDirectFileSystem(
    std::shared_ptr<rocksdb::FileSystem> base) {
  return std::make_shared<DirectFileSystem>(std::move(base));
}

}  // namespace sstferry
