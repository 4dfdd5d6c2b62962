#include "pipeline/disk/durable.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <sstream>
#include <thread>
#include <vector>

#include "format/end_state.h"
#include "pipeline/base/full_disk.h"
#include "pipeline/base/start_thread.h"
#include "sstferry/descriptor.h"

namespace sstferry {
namespace {

namespace fs = std::filesystem;

// Maximum number of threads in one SyncAll().
constexpr size_t kSyncsAtOnce = 8;

using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Status;

std::function<void(const std::string&)>& FaultHook() {
  static std::function<void(const std::string&)> hook;
  return hook;
}

Status At(const std::string& what, const Status& status) {
  return WithContext(status, EndStateOf(status), what);
}

// Converts the result of a system call into a status.
IOStatus CallStatus(long result) {
  if (result == 0) {
    return IOStatus::OK();
  }
  const int error = errno;
  const char* reason = strerror(error);
  // EINVAL: NFS, 9p and most FUSE file systems do not support flags in
  // renameat2().
  return error == EINVAL || error == ENOSYS || error == EOPNOTSUPP
             ? IOStatus::NotSupported(reason)
         : IsOutOfRoom(error) ? IOStatus::NoSpace(reason)
                              : IOStatus::IOError(reason);
}

IOStatus RenameAt2(const std::string& from, const std::string& to,
                   unsigned flags) {
  return CallStatus(syscall(SYS_renameat2, AT_FDCWD, from.c_str(), AT_FDCWD,
                            to.c_str(), flags));
}

IOStatus SymbolicLink(const std::string& to, const std::string& path) {
  return CallStatus(symlink(to.c_str(), path.c_str()));
}

// Returns the path as mountinfo writes it. mountinfo writes these four bytes as
// octal numbers.
std::string InMountInfo(const std::string& path) {
  std::string text;
  for (const char byte : path) {
    switch (byte) {
      case ' ':
        text += "\\040";
        break;
      case '\t':
        text += "\\011";
        break;
      case '\n':
        text += "\\012";
        break;
      case '\\':
        text += "\\134";
        break;
      default:
        text += byte;
    }
  }
  return text;
}

// Removes a directory. REQUIRES: nothing is mounted below it.
Status RemoveUnmounted(rocksdb::FileSystem* file_system,
                       const std::string& path) {
  std::error_code error;
  const fs::file_type type = fs::symlink_status(path, error).type();
  if (type == fs::file_type::not_found) {
    return Status::OK();
  }
  if (type != fs::file_type::directory) {
    return At("remove " + path,
              file_system->DeleteFile(path, IOOptions(), nullptr));
  }
  std::vector<std::string> children;
  for (fs::directory_iterator it(path, error), end; !error && it != end;
       it.increment(error)) {
    children.push_back(it->path().string());
  }
  if (error) {
    return MakeStatus(EndState::kInternal,
                      "remove " + path + ": " + error.message());
  }
  for (const std::string& child : children) {
    RETURN_IF_ERROR(RemoveUnmounted(file_system, child));
  }
  return At("remove " + path,
            file_system->DeleteDir(path, IOOptions(), nullptr));
}

}  // namespace

IOStatus RenamingFileSystem::ExchangeNames(const std::string& a,
                                           const std::string& b) {
  return RenameAt2(a, b, RENAME_EXCHANGE);
}

IOStatus RenamingFileSystem::RenameToNew(const std::string& from,
                                         const std::string& to) {
  return RenameAt2(from, to, RENAME_NOREPLACE);
}

IOStatus RenamingFileSystem::LinkSymbolically(const std::string& to,
                                              const std::string& path) {
  return SymbolicLink(to, path);
}

Status ExchangeNames(rocksdb::FileSystem* file_system, const std::string& a,
                     const std::string& b) {
  auto* watching = file_system->CheckedCast<RenamingFileSystem>();
  return At("exchange " + a + " and " + b,
            watching != nullptr ? watching->ExchangeNames(a, b)
                                : RenameAt2(a, b, RENAME_EXCHANGE));
}

Status RenameToNew(rocksdb::FileSystem* file_system, const std::string& from,
                   const std::string& to) {
  auto* watching = file_system->CheckedCast<RenamingFileSystem>();
  return At("rename " + from + " to " + to,
            watching != nullptr ? watching->RenameToNew(from, to)
                                : RenameAt2(from, to, RENAME_NOREPLACE));
}

Status LinkSymbolically(rocksdb::FileSystem* file_system, const std::string& to,
                        const std::string& path) {
  auto* watching = file_system->CheckedCast<RenamingFileSystem>();
  return At("link " + path + " to " + to,
            watching != nullptr ? watching->LinkSymbolically(to, path)
                                : SymbolicLink(to, path));
}

Status SetModifiedTime(const std::string& path, uint64_t modified_ns) {
  constexpr uint64_t kSecond = 1'000'000'000;
  const timespec times[2] = {
      {0, UTIME_OMIT},
      {static_cast<time_t>(modified_ns / kSecond),
       static_cast<long>(modified_ns % kSecond)}};
  return utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW) == 0
             ? Status::OK()
             : MakeStatus(EndState::kInternal,
                          "cannot set the modification time of " + path +
                              ": " + strerror(errno));
}

Status SyncFile(rocksdb::FileSystem* file_system, const std::string& path) {
  std::unique_ptr<rocksdb::FSRandomRWFile> file;
  IOStatus status = file_system->NewRandomRWFile(path, rocksdb::FileOptions(),
                                                 &file, nullptr);
  if (status.ok()) {
    status = file->Fsync(IOOptions(), nullptr);
    const IOStatus closed = file->Close(IOOptions(), nullptr);
    status = status.ok() ? closed : status;
  }
  return At("sync " + path, status);
}

Status SyncDirectory(rocksdb::FileSystem* file_system,
                     const std::string& dir) {
  std::unique_ptr<rocksdb::FSDirectory> directory;
  IOStatus status =
      file_system->NewDirectory(dir, IOOptions(), &directory, nullptr);
  if (status.ok()) {
    status = directory->Fsync(IOOptions(), nullptr);
    const IOStatus closed = directory->Close(IOOptions(), nullptr);
    status = status.ok() ? closed : status;
  }
  return At("sync " + dir, status);
}

Status SyncAll(rocksdb::FileSystem* file_system,
               const std::set<std::string>& files,
               const std::set<std::string>& dirs) {
  std::vector<std::string> paths(files.begin(), files.end());
  paths.insert(paths.end(), dirs.begin(), dirs.end());
  std::atomic<size_t> next{0};
  std::mutex mu;
  Status first;
  const auto work = [&] {
    for (size_t i = next++; i < paths.size(); i = next++) {
      const Status status = i < files.size()
                                ? SyncFile(file_system, paths[i])
                                : SyncDirectory(file_system, paths[i]);
      std::lock_guard<std::mutex> lock(mu);
      if (first.ok()) first = status;
    }
  };
  std::vector<std::thread> threads;
  while (threads.size() + 1 < std::min(paths.size(), kSyncsAtOnce)) {
    std::thread thread;
    if (!StartThread(work, &thread).ok()) {
      break;  // the started threads, or this thread, sync the other files
    }
    threads.push_back(std::move(thread));
  }
  work();
  for (std::thread& thread : threads) {
    thread.join();
  }
  return first;
}

Status WriteDurably(rocksdb::FileSystem* file_system, const std::string& path,
                    const rocksdb::Slice& contents) {
  const std::string temporary = path + ".tmp";
  std::unique_ptr<rocksdb::FSWritableFile> file;
  IOStatus status = file_system->NewWritableFile(
      temporary, rocksdb::FileOptions(), &file, nullptr);
  if (status.ok()) {
    status = file->Append(contents, IOOptions(), nullptr);
  }
  if (status.ok()) {
    FaultPoint("WriteDurably:Written");
    status = file->Fsync(IOOptions(), nullptr);
  }
  if (file != nullptr) {
    const IOStatus closed = file->Close(IOOptions(), nullptr);
    status = status.ok() ? closed : status;
  }
  if (status.ok()) {
    FaultPoint("WriteDurably:Synced");
    status = file_system->RenameFile(temporary, path, IOOptions(), nullptr);
  }
  if (!status.ok()) {
    return At("write " + path, status);
  }
  FaultPoint("WriteDurably:Renamed");
  return SyncDirectory(file_system, fs::path(path).parent_path().string());
}

Status SyncTree(rocksdb::FileSystem* file_system, const std::string& dir) {
  std::error_code error;
  for (fs::recursive_directory_iterator it(dir, error), end;
       !error && it != end; it.increment(error)) {
    const std::string path = it->path().string();
    RETURN_IF_ERROR(it->is_directory() ? SyncDirectory(file_system, path)
                                       : SyncFile(file_system, path));
  }
  if (error) {
    return MakeStatus(EndState::kInternal,
                      "sync " + dir + ": " + error.message());
  }
  return SyncDirectory(file_system, dir);
}

Status CheckNothingMounted(const std::string& dir) {
  // The fifth field of a line is the mount point.
  constexpr int kPointField = 5;
  std::error_code error;
  const std::string real = fs::canonical(dir, error).string();
  if (error) {
    return MakeStatus(EndState::kInternal, dir + ": " + error.message());
  }
  const std::string prefix = InMountInfo(real) + "/";
  const std::string text = ReadProc("self/mountinfo");
  if (text.empty() || text.size() >= kMaxProcBytes) {
    return MakeStatus(EndState::kInternal,
                      "cannot find out if anything is mounted below " + dir +
                          ": cannot read all of /proc/self/mountinfo");
  }
  std::istringstream mounts(text);
  std::string line;
  while (std::getline(mounts, line)) {
    std::istringstream fields(line);
    std::string field;
    for (int i = 0; i < kPointField; ++i) {
      fields >> field;
    }
    if (field.starts_with(prefix)) {
      return MakeStatus(EndState::kRefused,
                        dir + ": expected that nothing is mounted below it, "
                              "found a mount at " + field +
                            ", whose files are not part of it; unmount it, or "
                            "mount it elsewhere");
    }
  }
  return Status::OK();
}

Status RemoveTree(rocksdb::FileSystem* file_system, const std::string& path) {
  std::error_code error;
  if (fs::symlink_status(path, error).type() == fs::file_type::directory) {
    RETURN_IF_ERROR(CheckNothingMounted(path));
  }
  return RemoveUnmounted(file_system, path);
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
