#include "pipeline/target/durable.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "format/end_state.h"

namespace sstferry {
namespace {

using rocksdb::IOOptions;
using rocksdb::Status;

std::function<void(const std::string&)>& FaultHook() {
  static std::function<void(const std::string&)> hook;
  return hook;
}

Status SyncPath(const std::string& path, int flags) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC);
  if (fd < 0) {
    return MakeStatus(EndState::kInternal,
                      "open " + path + ": " + strerror(errno));
  }
  const int result = fsync(fd);
  const int error = errno;
  close(fd);
  if (result != 0) {
    return MakeStatus(
        error == ENOSPC ? EndState::kNoSpace : EndState::kInternal,
        "sync " + path + ": " + strerror(error));
  }
  return Status::OK();
}

}  // namespace

Status SyncDirectory(const std::string& dir) {
  return SyncPath(dir, O_RDONLY | O_DIRECTORY);
}

Status WriteDurably(rocksdb::FileSystem* file_system, const std::string& path,
                    const rocksdb::Slice& contents) {
  const std::string temporary = path + ".tmp";
  std::unique_ptr<rocksdb::FSWritableFile> file;
  rocksdb::IOStatus status = file_system->NewWritableFile(
      temporary, rocksdb::FileOptions(), &file, nullptr);
  if (status.ok()) {
    status = file->Append(contents, IOOptions(), nullptr);
  }
  if (status.ok()) {
    status = file->Fsync(IOOptions(), nullptr);
  }
  if (file != nullptr) {
    const rocksdb::IOStatus closed = file->Close(IOOptions(), nullptr);
    status = status.ok() ? closed : status;
  }
  if (status.ok()) {
    status = file_system->RenameFile(temporary, path, IOOptions(), nullptr);
  }
  if (!status.ok()) {
    return WithContext(status, EndStateOf(status), "write " + path);
  }
  return SyncDirectory(std::filesystem::path(path).parent_path().string());
}

Status SyncTree(const std::string& dir) {
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator it(dir, error), end;
       !error && it != end; it.increment(error)) {
    const Status status =
        it->is_directory() ? SyncDirectory(it->path().string())
                           : SyncPath(it->path().string(), O_RDONLY);
    if (!status.ok()) {
      return status;
    }
  }
  if (error) {
    return MakeStatus(EndState::kInternal,
                      "sync " + dir + ": " + error.message());
  }
  return SyncDirectory(dir);
}

void FaultPoint(const char* name) {
  if (FaultHook()) {
    FaultHook()(name);
  }
}

void TEST_SetFaultHook(std::function<void(const std::string&)> hook) {
  FaultHook() = std::move(hook);
}

}  // namespace sstferry
