#include "pipeline/base/database_open.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "format/printable.h"
#include "sstferry/descriptor.h"

namespace sstferry {
namespace {

namespace fs = std::filesystem;

constexpr char kLock[] = "LOCK";

// Returns true if this process has this file open, under any name.
bool IsOpenHere(const struct stat& file) {
  std::error_code error;
  fs::directory_iterator it("/proc/self/fd", error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    struct stat info;
    if (stat(it->path().c_str(), &info) == 0 && info.st_dev == file.st_dev &&
        info.st_ino == file.st_ino) {
      return true;
    }
  }
  return false;
}

// Returns "process 4711 (myapp)", or "a process" for a process in another
// container, which has no id here.
std::string NameProcess(pid_t process) {
  if (process <= 0) {
    return "a process";
  }
  const std::string number = std::to_string(process);
  const std::string comm = ReadProc(number + "/comm");
  const std::string name = comm.substr(0, comm.find('\n'));
  return "process " + number +
         (name.empty() ? "" : " (" + Printable(name) + ")");
}

// Finds the process that holds the lock. Returns false if this cannot be
// determined.
//
// RocksDB's lock is an fcntl lock. A process cannot see its own fcntl locks,
// and loses them when it closes any descriptor of the file. So a lock file that
// this process has open counts as locked, and is not opened again.
bool FindProcess(const std::string& dir, std::optional<pid_t>* process) {
  process->reset();
  std::error_code error;
  const Descriptor directory =
      OpenDirectory(fs::canonical(dir, error).string());
  struct stat info;
  if (!directory.is_open()) {
    return false;
  }
  if (fstatat(directory.get(), kLock, &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return errno == ENOENT;
  }
  if (IsOpenHere(info)) {
    *process = getpid();
    return true;
  }
  const Descriptor file = OpenIn(directory.get(), kLock, O_RDONLY);
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (!file.is_open() || fcntl(file.get(), F_GETLK, &lock) != 0) {
    return false;
  }
  if (lock.l_type != F_UNLCK) {
    *process = std::max<pid_t>(lock.l_pid, 0);
  }
  return true;
}

}  // namespace

bool IsDatabaseOpen(const std::string& dir) {
  return DatabaseProcess(dir).has_value();
}

bool IsDatabaseClosed(const std::string& dir) {
  std::optional<pid_t> process;
  return FindProcess(dir, &process) && !process.has_value();
}

std::optional<pid_t> DatabaseProcess(const std::string& dir) {
  std::optional<pid_t> process;
  return FindProcess(dir, &process) ? process : std::nullopt;
}

std::string DatabaseUser(const std::string& dir) {
  const std::optional<pid_t> process = DatabaseProcess(dir);
  if (process == getpid()) {
    return "this process";
  }
  return process.has_value() ? NameProcess(*process) : "";
}

}  // namespace sstferry
