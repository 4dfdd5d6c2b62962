// The errors of a disk that mean that it is full.
#include "pipeline/base/full_disk.h"

#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rocksdb/file_system.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::full_disk_test {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

// The errno of the next calls. 0: they succeed.
int g_error = 0;

// Fails like RocksDB's file system: it sets errno, and returns a status that
// does not distinguish all errors.
IOStatus Answer(const std::function<IOStatus()>& call) {
  if (g_error == 0) return call();
  errno = g_error;
  return IOStatus::IOError(strerror(g_error));
}

class FailingFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  using FSWritableFileOwnerWrapper::FSWritableFileOwnerWrapper;
  IOStatus Append(const Slice& data, const IOOptions& options,
                  IODebugContext* dbg) override {
    return Answer([&] {
      return FSWritableFileOwnerWrapper::Append(data, options, dbg);
    });
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* dbg) override {
    return Answer([&] {
      return FSWritableFileOwnerWrapper::Sync(options, dbg);
    });
  }
};

class FailingDisk : public rocksdb::FileSystemWrapper {
 public:
  using FileSystemWrapper::FileSystemWrapper;
  const char* Name() const override { return "sstferry.FailingDisk"; }
  IOStatus NewWritableFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* file,
                           IODebugContext* dbg) override {
    const IOStatus status = Answer([&] {
      return FileSystemWrapper::NewWritableFile(name, options, file, dbg);
    });
    if (status.ok()) *file = std::make_unique<FailingFile>(std::move(*file));
    return status;
  }
  IOStatus LinkFile(const std::string& from, const std::string& to,
                    const IOOptions& options, IODebugContext* dbg) override {
    return Answer([&] {
      return FileSystemWrapper::LinkFile(from, to, options, dbg);
    });
  }
};

TEST_CASE("A full quota, a file size limit and a full disk are NoSpace, and a "
          "stale handle is not",
          "[pipeline][nospace]") {
  const ScratchDir dir;
  const auto disk = MakeFullDiskFileSystem(
      std::make_shared<FailingDisk>(rocksdb::FileSystem::Default()));
  const std::string path = dir / "file";
  std::unique_ptr<rocksdb::FSWritableFile> file;
  REQUIRE(disk->NewWritableFile(path, FileOptions(), &file, nullptr).ok());
  const std::vector<std::function<IOStatus()>> calls = {
      [&] { return file->Append("bytes", IOOptions(), nullptr); },
      [&] { return file->Sync(IOOptions(), nullptr); },
      [&] {
        std::unique_ptr<rocksdb::FSWritableFile> other;
        return disk->NewWritableFile(path + "2", FileOptions(), &other,
                                     nullptr);
      },
      [&] { return disk->LinkFile(path, path + "3", IOOptions(), nullptr); },
  };
  for (const int error : {ENOSPC, EDQUOT, EFBIG, EIO, ESTALE, EINTR, EACCES}) {
    const bool is_room = error == ENOSPC || error == EDQUOT || error == EFBIG;
    INFO(strerror(error));
    REQUIRE(IsOutOfRoom(error) == is_room);
    for (const auto& call : calls) {
      g_error = error;
      const IOStatus status = call();
      g_error = 0;
      REQUIRE_FALSE(status.ok());
      REQUIRE(status.IsNoSpace() == is_room);
      REQUIRE(status.ToString().find(strerror(error)) != std::string::npos);
    }
  }
  for (const auto& call : calls) {
    // Failed calls can be repeated. An old errno is not taken for an error of
    // the new call.
    errno = EDQUOT;
    REQUIRE(call().ok());
  }
}

}  // namespace
}  // namespace sstferry::full_disk_test
