#include "pipeline/base/database_open.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iterator>
#include <system_error>
#include <thread>

#include "format/end_state.h"
#include "format/printable.h"
#include "pipeline/base/start_thread.h"
#include "sstferry/descriptor.h"

namespace sstferry {
namespace {

namespace fs = std::filesystem;

constexpr char kLock[] = "LOCK";

constexpr uint32_t kFuse = 0x65735546;  // FUSE and virtiofs
constexpr uint32_t kUnknownType = 0;

// Runs `work` in a thread that has its own, empty table of descriptors. Returns
// false without running `work` if the system does not allow such a thread: the
// kernel is older than 5.9, or a container blocks the system call.
bool RunApart(const std::function<void()>& work) {
  bool is_apart = false;
  std::thread thread;
  const rocksdb::Status started = StartThread(
      [&] {
        // Block all signals in this thread: a signal handler may use a
        // descriptor that is not open here.
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, nullptr);
        is_apart =
            syscall(SYS_close_range, 0U, ~0U, CLOSE_RANGE_UNSHARE) == 0;
        if (is_apart) work();
      },
      &thread);
  if (started.ok()) thread.join();
  return is_apart;
}

// Returns true if the process (its id, or "self") has the file open, under any
// name. Returns false if this account may not look at that process.
bool IsOpenBy(const std::string& process, const struct stat& file) {
  std::error_code error;
  fs::directory_iterator it("/proc/" + process + "/fd", error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    struct stat info;
    if (stat(it->path().c_str(), &info) == 0 && info.st_dev == file.st_dev &&
        info.st_ino == file.st_ino) {
      return true;
    }
  }
  return false;
}

// Finds the process that holds the lock of the file at `path`. Returns false if
// the holder cannot be determined. Calls the kernel directly, because
// ThreadSanitizer expects that all threads share one table of descriptors.
bool FindHolder(const std::string& path, std::optional<pid_t>* process) {
  constexpr int kFlags =
      O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
  const auto file =
      static_cast<int>(syscall(SYS_openat, AT_FDCWD, path.c_str(), kFlags));
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  const bool is_known = file >= 0 && fcntl(file, F_GETLK, &lock) == 0;
  if (file >= 0) syscall(SYS_close, file);
  if (is_known && lock.l_type != F_UNLCK) {
    *process = std::max<pid_t>(lock.l_pid, 0);
  }
  return is_known;
}

// Returns a name for messages: "process 4711 (myapp)". Returns "a process" if
// the process has no id here, because it runs in another container.
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

// Finds the process that holds RocksDB's lock on `dir`. Returns false if the
// holder cannot be determined.
//
// RocksDB's lock is an fcntl lock, which belongs to a table of descriptors. A
// thread that uses the same table as the holder cannot see the lock. It even
// releases the lock when it closes a descriptor of the lock file. So a thread
// with its own table looks for the holder. If the system does not allow such a
// thread, this function first checks if this process has the lock file open. If
// so, it treats the file as locked by this process and does not open it.
// Otherwise it opens the file. A thread that opens the database in between
// loses its lock.
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
  const std::string path = PathOfOpen(directory) + "/" + kLock;
  bool is_known = false;
  if (RunApart([&] { is_known = FindHolder(path, process); })) {
    return is_known;
  }
  if (IsOpenBy("self", info)) {
    *process = getpid();
    return true;
  }
  return FindHolder(path, process);
}

// Returns true if `dir` may be on a network file system, on which this machine
// may see another machine's writes late. Returns false if there is no `dir`.
// Sets *type to the type of the file system, or to kUnknownType.
bool MayBeOnNetwork(const std::string& dir, uint32_t* type) {
  constexpr uint32_t kTypes[] = {
      0x6969,      // NFS
      0x517b,      // SMB
      0xff534d42,  // CIFS
      0xfe534d42,  // SMB2
      0x01021997,  // 9p
      kFuse,
  };
  *type = kUnknownType;
  struct statfs info;
  if (statfs(dir.c_str(), &info) != 0) {
    return errno != ENOENT && errno != ENOTDIR;
  }
  *type = static_cast<uint32_t>(info.f_type);
  return std::count(std::begin(kTypes), std::end(kTypes), *type) != 0;
}

// Returns true if the process that holds the lock certainly runs on this
// machine. `process` is the id that the kernel reports. For a process on
// another machine, the id is 0 or negative, with two exceptions. On CIFS, it is
// the id of this process. On FUSE, it may be the id that the process has on its
// own machine, if any process here has the same id. In these cases, checks that
// the process with this id has the lock file open.
bool IsOfThisMachine(const std::string& dir, uint32_t type, pid_t process) {
  if (process <= 0) {
    return false;
  }
  const bool is_this = process == getpid();
  if (!is_this && type != kFuse && type != kUnknownType) {
    return true;
  }
  struct stat info;
  return stat((dir + "/" + kLock).c_str(), &info) == 0 &&
         IsOpenBy(is_this ? "self" : std::to_string(process), info);
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

rocksdb::Status CheckWriterIsHere(const std::string& dir) {
  uint32_t type = kUnknownType;
  if (!MayBeOnNetwork(dir, &type)) {
    return rocksdb::Status::OK();
  }
  std::optional<pid_t> process;
  const bool is_known = FindProcess(dir, &process);
  if (is_known &&
      (!process.has_value() || IsOfThisMachine(dir, type, *process))) {
    return rocksdb::Status::OK();
  }
  return MakeStatus(
      EndState::kRefused,
      dir + " is on a network file system, and " +
          (is_known ? "a process that this machine does not know, or a "
                      "refresh in place, holds its LOCK"
                    : "it is unknown whether a process holds its LOCK") +
          "; what another machine writes arrives here late and in another "
          "order: run sstferry where the application runs (if that is another "
          "container of this machine, in its PID namespace; on FUSE, as the "
          "application's account, or as root with CAP_SYS_PTRACE), or copy "
          "the database while "
          "nobody has it open");
}

}  // namespace sstferry
