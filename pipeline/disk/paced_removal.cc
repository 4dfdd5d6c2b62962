#include "pipeline/disk/paced_removal.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "format/end_state.h"
#include "pipeline/disk/durable.h"
#include "sstferry/descriptor.h"

namespace sstferry {
namespace {

namespace fs = std::filesystem;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Status;
using std::chrono::steady_clock;

// Size of one step in which a file is truncated: the bytes that the rate allows
// in 1/50 second, but at least kLeastPieceBytes.
constexpr uint64_t kLeastPieceBytes = 64u << 10;
constexpr uint64_t kPiecesPerSecond = 50;

// Limits the rate of deletion. A pause does not allow a faster deletion later.
class Pace {
 public:
  Pace(uint64_t bytes_per_sec, StopSignal* stop)
      : bytes_per_sec_(bytes_per_sec), stop_(stop) {}

  uint64_t piece_bytes() const {
    return bytes_per_sec_ == 0
               ? UINT64_MAX
               : std::max(kLeastPieceBytes, bytes_per_sec_ / kPiecesPerSecond);
  }
  // Blocks until the rate allows the `bytes` that were just removed.
  Status Spend(uint64_t bytes) {
    const steady_clock::time_point now = steady_clock::now();
    next_ = std::max(next_, now);
    if (bytes_per_sec_ > 0) {
      next_ += std::chrono::nanoseconds(static_cast<int64_t>(
          static_cast<double>(bytes) / static_cast<double>(bytes_per_sec_) *
          1e9));
    }
    const bool stopped = stop_->WaitFor(
        std::chrono::duration_cast<std::chrono::milliseconds>(next_ - now));
    return stopped ? MakeStatus(EndState::kCancelled, "stopped on request")
                   : Status::OK();
  }

 private:
  const uint64_t bytes_per_sec_;
  StopSignal* const stop_;
  steady_clock::time_point next_ = steady_clock::now();
};

// Returns true if nothing else uses the file. The file must have only one name,
// and no process, including this one, may have it open.
//
// The kernel grants a write lease only for a file that no process has open, so
// a failed request means that the file is open. If a process opens the file
// during the lease, the kernel sends SIGURG. This signal is ignored by default;
// SIGIO, the usual signal, would end this process.
bool IsUnshared(const std::string& path) {
  struct stat dir;
  if (stat(fs::path(path).parent_path().c_str(), &dir) != 0 ||
      dir.st_uid != geteuid()) {
    // The owner of the directory could replace the file with a link.
    return false;
  }
  // Closing this ends the lease.
  const Descriptor file = OpenPath(path, O_RDWR);
  struct stat info;
  return file.is_open() && fstat(file.get(), &info) == 0 &&
         S_ISREG(info.st_mode) && info.st_nlink == 1 &&
         fcntl(file.get(), F_SETSIG, SIGURG) == 0 &&
         fcntl(file.get(), F_SETLEASE, F_WRLCK) == 0;
}

Status Removed(const std::string& path, const Status& status) {
  return WithContext(status, EndState::kInternal, "remove " + path);
}

// Truncates a file step by step. Sets *left to the remaining size. If the file
// system cannot truncate, leaves the file unchanged.
Status CutFile(rocksdb::FileSystem* file_system, const std::string& path,
               Pace* pace, uint64_t* left) {
  std::unique_ptr<rocksdb::FSWritableFile> file;
  IOStatus cut = file_system->ReopenWritableFile(
      path, rocksdb::FileOptions(), &file, nullptr);
  Status paced;
  while (cut.ok() && paced.ok() && *left > pace->piece_bytes()) {
    const uint64_t kept = *left - pace->piece_bytes();
    cut = file->Truncate(kept, IOOptions(), nullptr);
    if (cut.ok()) {
      FaultPoint("PacedRemoval:FileCut");
      paced = pace->Spend(*left - kept);
      *left = kept;
    }
  }
  if (file != nullptr) {
    const IOStatus closed = file->Close(IOOptions(), nullptr);
    cut = cut.ok() ? closed : cut;
  }
  if (!cut.ok() && !cut.IsNotSupported()) {
    return Removed(path, cut);
  }
  return paced;
}

Status RemoveFile(rocksdb::FileSystem* file_system, const std::string& path,
                  Pace* pace) {
  struct stat info;
  // Only for a file with one name: otherwise removing the name frees no blocks.
  uint64_t left = lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
                          info.st_nlink == 1
                      ? static_cast<uint64_t>(info.st_size)
                      : 0;
  if (left > pace->piece_bytes() && IsUnshared(path)) {
    RETURN_IF_ERROR(CutFile(file_system, path, pace, &left));
  }
  const IOStatus deleted =
      file_system->DeleteFile(path, IOOptions(), nullptr);
  if (!deleted.ok()) {
    return Removed(path, deleted);
  }
  FaultPoint("PacedRemoval:FileRemoved");
  return pace->Spend(left);
}

// A directory whose files are removed. If it belongs to another account, the
// path leads through its descriptor. That account could otherwise rename the
// directory, or replace it with a link, during the removal.
class Directory {
 public:
  explicit Directory(const std::string& dir)
      : opened_(OpenPath(dir, O_RDONLY | O_DIRECTORY)),
        error_(opened_.is_open() ? 0 : errno) {
    struct stat info;
    const bool is_own = opened_.is_open() &&
                        fstat(opened_.get(), &info) == 0 &&
                        info.st_uid == geteuid();
    name_ = is_own ? dir : "/proc/self/fd/" + std::to_string(opened_.get());
  }

  int error() const { return error_; }
  const std::string& name() const { return name_; }

 private:
  const Descriptor opened_;
  const int error_;
  std::string name_;
};

Status RemoveAll(rocksdb::FileSystem* file_system, const std::string& path_of,
                 Pace* pace);

Status EmptyAll(rocksdb::FileSystem* file_system, const std::string& path_of,
                const std::string& kept, Pace* pace) {
  FaultPoint("PacedRemoval:Entering");
  const Directory opened(path_of);
  if (opened.error() != 0) {
    return MakeStatus(EndState::kInternal, "remove " + path_of + ": " +
                                               strerror(opened.error()));
  }
  const std::string& dir = opened.name();
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  for (fs::directory_iterator it(dir, error), end; !error && it != end;
       it.increment(error)) {
    entries.push_back(*it);
  }
  if (error) {
    return MakeStatus(EndState::kInternal,
                      "remove " + dir + ": " + error.message());
  }
  for (const fs::directory_entry& entry : entries) {
    const std::string path = entry.path().string();
    if (entry.path().filename() == kept) {
      continue;
    }
    const bool is_directory =
        entry.symlink_status(error).type() == fs::file_type::directory;
    RETURN_IF_ERROR(is_directory ? RemoveAll(file_system, path, pace)
                                 : RemoveFile(file_system, path, pace));
  }
  return Status::OK();
}

Status RemoveAll(rocksdb::FileSystem* file_system, const std::string& path_of,
                 Pace* pace) {
  RETURN_IF_ERROR(EmptyAll(file_system, path_of, /*kept=*/"", pace));
  return Removed(path_of,
                 file_system->DeleteDir(path_of, IOOptions(), nullptr));
}

}  // namespace

Status RemoveTreePaced(rocksdb::FileSystem* file_system,
                       const std::string& dir, uint64_t bytes_per_sec,
                       StopSignal* stop) {
  std::error_code error;
  const fs::file_type type = fs::symlink_status(dir, error).type();
  if (type == fs::file_type::not_found) {
    return Status::OK();
  }
  if (type != fs::file_type::directory) {
    return MakeStatus(EndState::kRefused,
                      "remove " + dir + ": expected a directory, found a link "
                                        "or a file; move it away");
  }
  RETURN_IF_ERROR(CheckNothingMounted(dir));
  Pace pace(bytes_per_sec, stop);
  return RemoveAll(file_system, dir, &pace);
}

Status EmptyDirectoryPaced(rocksdb::FileSystem* file_system,
                           const std::string& dir, const std::string& kept,
                           uint64_t bytes_per_sec, StopSignal* stop) {
  RETURN_IF_ERROR(CheckNothingMounted(dir));
  Pace pace(bytes_per_sec, stop);
  return EmptyAll(file_system, dir, kept, &pace);
}

}  // namespace sstferry
