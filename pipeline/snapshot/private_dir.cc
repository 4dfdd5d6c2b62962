#include "pipeline/snapshot/private_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <climits>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <random>
#include <system_error>

#include "format/end_state.h"
#include "pipeline/base/file_lock.h"
#include "pipeline/base/open_file.h"
#include "pipeline/snapshot/posix_files.h"
#include "sstferry/descriptor.h"

namespace sstferry {
namespace {

namespace fs = std::filesystem;
using rocksdb::Status;

constexpr char kRelease[] = "release";
constexpr char kNewLock[] = "lock.new";
constexpr char kLockMark[] = "sstferry snapshot 1\n";
constexpr size_t kMaxLockBytes = 64;
constexpr char kMarker[] = ".sstferry-snapshot-";
constexpr int kRandomDigits = 16;
// If a directory without a lock is older than this, it counts as abandoned. To
// make or to remove a directory takes much less time.
constexpr auto kUnlockedGrace = std::chrono::minutes(1);

std::string RandomHex() {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::random_device device;
  std::string text;
  for (int i = 0; i < kRandomDigits; i++) {
    text.push_back(kDigits[device() & 15]);
  }
  return text;
}

// Returns true if the name has the form that Create() uses,
// NAME.sstferry-snapshot-PID-RANDOM. Somebody may have given such a name to
// another directory; IsLockOf() detects this.
bool IsPrivateName(const std::string& name) {
  const size_t marker = name.rfind(kMarker);
  if (marker == std::string::npos || marker == 0) {
    return false;
  }
  const std::string tail = name.substr(marker + strlen(kMarker));
  const size_t dash = tail.find('-');
  if (dash == std::string::npos || dash == 0 ||
      tail.size() - dash - 1 != kRandomDigits) {
    return false;
  }
  return tail.find_first_not_of("0123456789") == dash &&
         tail.find_first_not_of("0123456789abcdef", dash + 1) ==
             std::string::npos;
}

// Links the tables, blob files and WALs of a snapshot, because nobody changes
// them, and copies the small files. If a file is a symbolic link that
// LinkFile() made, links the symbolic link itself.
Status LinkFiles(const std::string& from, const std::string& to,
                 bool copies_wals) {
  std::vector<std::string> names;
  Status status = ListDirectory(from, &names);
  for (const std::string& name : names) {
    const std::string extension = fs::path(name).extension().string();
    const std::string path = from + "/" + name;
    std::error_code error;
    if (!status.ok() || name == "LOCK" || !fs::is_regular_file(path, error)) {
      continue;
    }
    if (extension == ".sst" || extension == ".blob" ||
        (extension == ".log" && !copies_wals)) {
      if (link(path.c_str(), (to + "/" + name).c_str()) != 0) {
        status = ErrnoStatus(EndState::kSourceError, "cannot link", path,
                             errno);
      }
    } else if (!fs::copy_file(path, to + "/" + name, error)) {
      status = ErrnoStatus(EndState::kSourceError, "cannot copy", path,
                           error.value());
    }
  }
  return status;
}

// Sets *is_named to true if `name` in `parent` is still the open directory
// `dir`.
Status IsNamedIn(const Descriptor& parent, const std::string& name,
                 const Descriptor& dir, bool* is_named) {
  *is_named = false;
  FileId named;
  FileId opened;
  RETURN_IF_ERROR(FileIdOfNameIn(parent, name, &named));
  RETURN_IF_ERROR(FileIdOf(dir.get(), name, &opened));
  *is_named = opened.IsSameFile(named);
  return Status::OK();
}

// Removes a private directory. Removes the lease first, so that no process
// takes over an incomplete directory. Removes the lock last, so that a later
// process recognizes a directory whose removal was interrupted. If an account
// that can write to the parent has given the path to another directory, that
// directory is not changed.
Status RemoveTree(const Descriptor& parent, const Descriptor& dir,
                  const std::string& path) {
  for (const char* part : {"lease", "lease.new", "options", "replay", "held",
                           "db", "release", "lock.new", "lock"}) {
    RETURN_IF_ERROR(RemoveIn(dir.get(), part, path));
  }
  RETURN_IF_ERROR(EmptyDirectory(dir.get(), path));
  const std::string name = NameIn(path);
  bool is_named = false;
  RETURN_IF_ERROR(IsNamedIn(parent, name, dir, &is_named));
  if (!is_named) {
    return MakeStatus(EndState::kSourceError,
                      path + ": another process renamed this private directory "
                             "of a snapshot; its files were removed; whatever "
                             "has this name now was not changed");
  }
  for (int again = 3;; --again) {
    if (unlinkat(parent.get(), name.c_str(), AT_REMOVEDIR) == 0 ||
        errno == ENOENT) {
      return Status::OK();
    }
    if (errno != ENOTEMPTY || again == 0) {
      return ErrnoStatus(EndState::kSourceError, "cannot remove", path, errno);
    }
    // A process has requested a release after the directory was listed.
    RETURN_IF_ERROR(EmptyDirectory(dir.get(), path));
  }
}

// Makes the text of the lock file. It contains the directory's inode number.
Status MakeLockText(const Descriptor& dir, const std::string& path,
                    std::string* text) {
  FileId opened;
  RETURN_IF_ERROR(FileIdOf(dir.get(), path, &opened));
  *text = kLockMark + std::to_string(opened.inode) + "\n";
  return Status::OK();
}

// Returns true only if Create() made this lock for the directory `dir`.
bool IsLockOf(int lock_fd, const Descriptor& dir) {
  std::string expected;
  char text[kMaxLockBytes];
  const ssize_t bytes = pread(lock_fd, text, sizeof(text), 0);
  return bytes > 0 && MakeLockText(dir, "", &expected).ok() &&
         std::string(text, static_cast<size_t>(bytes)) == expected;
}

// Makes the lock file. First writes and syncs its text in a file with another
// name and locks that file, then renames it to "lock". So no other process
// finds a lock that is free or has no text.
Status MakeLock(const Descriptor& dir, const std::string& path, int* lock_fd) {
  std::string text;
  RETURN_IF_ERROR(MakeLockText(dir, path, &text));
  const int fd =
      OpenIn(dir.get(), kNewLock, O_CREAT | O_EXCL | O_RDWR, 0600).Release();
  if (fd < 0) {
    return ErrnoStatus(EndState::kSourceError, "cannot create",
                       path + "/" + kNewLock, errno);
  }
  errno = ENOSPC;  // a short write does not set errno
  if (write(fd, text.data(), text.size()) !=
          static_cast<ssize_t>(text.size()) ||
      fdatasync(fd) != 0 || flock(fd, LOCK_EX | LOCK_NB) != 0 ||
      renameat(dir.get(), kNewLock, dir.get(), "lock") != 0) {
    const int error = errno;
    close(fd);
    return ErrnoStatus(EndState::kSourceError, "cannot lock", path, error);
  }
  *lock_fd = fd;
  return Status::OK();
}

int OpenLock(const Descriptor& dir) {
  return OpenIn(dir.get(), "lock", O_RDWR).Release();
}

bool IsAbandonedYoung(const Descriptor& dir) {
  struct stat info;
  return fstat(dir.get(), &info) == 0 &&
         std::chrono::system_clock::now() -
                 std::chrono::system_clock::from_time_t(info.st_mtime) >
             kUnlockedGrace;
}

// Returns true if a directory's lease has not expired, or if the lease cannot
// be read at the moment. In the second case, a later call decides. REQUIRES:
// the caller has the directory's lock.
bool IsLeased(const std::string& path, const LeaseRules& rules) {
  Lease lease;
  const LeaseState state = ReadLease(path, &lease);
  if (state == LeaseState::kUnknown || state == LeaseState::kForeign) {
    return true;
  }
  if (state != LeaseState::kGood || rules.Left(lease) == 0) {
    return false;
  }
  if (lease.renewed_seconds > rules.Now()) {
    lease.renewed_seconds = rules.Now();
    return WriteLease(path, lease).ok();
  }
  return true;
}

// Removes a directory without a lock. Its owner crashed before it had made the
// lock, or after it had removed everything else. So such a directory has at
// most a lock file with another name and a request for a release. If anything
// else is in it, it is not removed.
Status RemoveUnlocked(const Descriptor& parent, const Descriptor& dir,
                      const std::string& path, bool* removed) {
  std::vector<std::string> names;
  RETURN_IF_ERROR(ListDirectory(PathOfOpen(dir), &names));
  for (const std::string& name : names) {
    FileId found;
    RETURN_IF_ERROR(FileIdOfNameIn(dir, name, &found));
    if ((name != kNewLock && name != kRelease) ||
        found.bytes > kMaxLockBytes) {
      return Status::OK();
    }
  }
  for (const std::string& name : names) {
    unlinkat(dir.get(), name.c_str(), 0);
  }
  const std::string own_name = NameIn(path);
  bool is_named = false;
  RETURN_IF_ERROR(IsNamedIn(parent, own_name, dir, &is_named));
  *removed = is_named &&
             unlinkat(parent.get(), own_name.c_str(), AT_REMOVEDIR) == 0;
  return Status::OK();
}

// Returns the error for a directory that has a lock of another directory.
Status ForeignLock(EndState state, const std::string& path) {
  return MakeStatus(state, path + ": expected the lock of a private snapshot, "
                                  "found another file named lock; if an "
                                  "earlier sstferry left this directory, "
                                  "remove it");
}

Status RemoveIfAbandoned(const std::string& path, const LeaseRules& rules,
                         bool* removed) {
  *removed = false;
  const Descriptor parent = OpenDirectory(DirectoryOf(path));
  const Descriptor dir = OpenOwnDirectoryIn(parent, NameIn(path));
  if (!dir.is_open()) {
    return Status::OK();
  }
  const int fd = OpenLock(dir);
  if (fd < 0) {
    return errno == ENOENT && IsAbandonedYoung(dir)
               ? RemoveUnlocked(parent, dir, path, removed)
               : Status::OK();
  }
  Status status;
  const bool is_free = flock(fd, LOCK_EX | LOCK_NB) == 0;
  if (is_free && !IsLockOf(fd, dir)) {
    status = ForeignLock(EndState::kSourceError, path);
  } else if (is_free && !IsLeased(PathOfOpen(dir), rules)) {
    *removed = true;
    status = RemoveTree(parent, dir, path);
  }
  close(fd);
  return status;
}

// Returns the first bytes of `name`, at most `most_bytes`. Does not cut a UTF-8
// character.
std::string BeginOf(const std::string& name, size_t most_bytes) {
  size_t bytes = std::min(name.size(), most_bytes);
  while (bytes > 0 && bytes < name.size() &&
         (static_cast<unsigned char>(name[bytes]) & 0xc0) == 0x80) {
    --bytes;
  }
  return name.substr(0, bytes);
}

// Returns the error of a failed creation. `what` is followed by `path`.
Status CannotCreate(const std::string& path, int error,
                    const char* what =
                        "cannot make the snapshot's private directory") {
  const Status status =
      ErrnoStatus(EndState::kSourceError, what, path, error);
  if (EndStateOf(status) == EndState::kNoSpace) {
    return status;
  }
  return WithContext(status, EndState::kSourceError,
                     error == EROFS
                         ? "expected a writable directory, which "
                           "--snapshot-dir can name (on any file system if "
                           "the source's is read-only)"
                         : "expected a writable directory on the source's "
                           "file system, which --snapshot-dir can name");
}

}  // namespace

Status PrivateDir::CheckParent(const std::string& parent) {
  const std::string path = parent + "/";
  return access(path.c_str(), W_OK | X_OK) == 0
             ? Status::OK()
             : CannotCreate(parent, errno,
                            "cannot make the snapshot's private directory in");
}

Status PrivateDir::Create(const std::string& parent, const std::string& name,
                          std::unique_ptr<PrivateDir>* result) {
  const std::string own = kMarker + std::to_string(getpid()) + "-" +
                          RandomHex();
  const std::string own_name = BeginOf(name, NAME_MAX - own.size()) + own;
  const std::string path = parent + "/" + own_name;
  Descriptor in = OpenDirectory(DirectoryOf(path));
  if (!in.is_open() || mkdirat(in.get(), own_name.c_str(), 0700) != 0) {
    return CannotCreate(path, errno);
  }
  Descriptor opened = OpenOwnDirectoryIn(in, own_name);
  if (!opened.is_open()) {
    return CannotCreate(path, errno);
  }
  int lock_fd = -1;
  Status status = MakeLock(opened, path, &lock_fd);
  if (!status.ok()) {
    // The directory is empty. If it cannot be removed now, the next start
    // removes it.
    RemoveTree(in, opened, path).PermitUncheckedError();
    return status;
  }
  std::unique_ptr<PrivateDir> dir(
      new PrivateDir(path, std::move(in), std::move(opened), lock_fd));
  status = dir->Clear();
  if (status.ok()) {
    *result = std::move(dir);
  }
  return status;
}

Status PrivateDir::CreateLinked(const std::string& path,
                                const std::string& own_path,
                                std::unique_ptr<PrivateDir>* result,
                                bool copies_wals) {
  const fs::path given(path);
  const std::string whole = given.filename().string();
  std::unique_ptr<PrivateDir> dir;
  Status status = Create(given.parent_path().string(),
                         whole.substr(0, whole.rfind(kMarker)), &dir);
  if (status.ok()) status = LinkFiles(own_path + "/db", dir->db(), copies_wals);
  for (const char* part : {"/options", "/replay"}) {
    std::error_code error;
    if (status.ok() && fs::exists(own_path + part, error) &&
        !fs::copy_file(own_path + part, dir->own_path() + part, error)) {
      status = ErrnoStatus(EndState::kSourceError, "cannot copy", path + part,
                           error.value());
    }
  }
  if (status.ok()) *result = std::move(dir);
  return status;
}

Status PrivateDir::Adopt(const std::string& path,
                         std::unique_ptr<PrivateDir>* result) {
  result->reset();
  Descriptor parent = OpenDirectory(DirectoryOf(path));
  Descriptor dir = OpenOwnDirectoryIn(parent, NameIn(path));
  const std::string own_path = PathOfOpen(dir);
  Lease lease;
  if (!dir.is_open() || ReadLease(own_path, &lease) != LeaseState::kGood) {
    return Status::OK();
  }
  const int fd = OpenLock(dir);
  if (fd < 0) {
    return Status::OK();
  }
  if (!IsLockOf(fd, dir)) {
    close(fd);
    return ForeignLock(EndState::kSnapshotGone, path);
  }
  // Reads the lease again after the lock was taken, because the previous owner
  // of the lock may have just removed the lease.
  if (!LockFile(fd, path).ok() ||
      ReadLease(own_path, &lease) != LeaseState::kGood ||
      !HoldsOnlyFiles(own_path + "/db")) {
    close(fd);
    return Status::OK();
  }
  result->reset(
      new PrivateDir(path, std::move(parent), std::move(dir), fd));
  (*result)->Keep(true);
  return Status::OK();
}

PrivateDir::~PrivateDir() {
  if (!keep_) {
    // If this fails, the next start removes the remaining files, as it does
    // after a crash.
    const Status removed = RemoveTree(parent_, dir_, path_);
    if (!removed.ok() && log_) {
      log_(MessageOf(removed));
    }
  }
  close(lock_fd_);
}

Status AskForRelease(const std::string& path) {
  const Descriptor dir = OpenOwnDirectory(path);
  if (!dir.is_open() ||
      !OpenIn(dir.get(), kRelease, O_CREAT | O_WRONLY, 0600).is_open()) {
    return ErrnoStatus(EndState::kInternal, "cannot create",
                       path + "/" + kRelease, errno);
  }
  return Status::OK();
}

bool IsReleaseAsked(const std::string& path) {
  struct stat info;
  return lstat((path + "/" + kRelease).c_str(), &info) == 0;
}

void ForgetRelease(const std::string& path) {
  const Descriptor dir = OpenOwnDirectory(path);
  if (dir.is_open()) {
    unlinkat(dir.get(), kRelease, 0);
  }
}

Status PrivateDir::Clear() {
  for (const char* part : {"held", "db"}) {
    RETURN_IF_ERROR(RemoveIn(dir_.get(), part, path_));
    if (mkdirat(dir_.get(), part, 0700) != 0) {
      return ErrnoStatus(EndState::kSourceError, "cannot make",
                         path_ + "/" + part, errno);
    }
  }
  return Status::OK();
}

Status ListPrivateDirs(const std::string& parent,
                       std::vector<std::string>* paths) {
  std::vector<std::string> names;
  const Status status = ListDirectory(parent, &names);
  paths->clear();
  for (const std::string& name : names) {
    if (IsPrivateName(name)) {
      paths->push_back(parent + "/" + name);
    }
  }
  return status;
}

Status RemoveLeftoverSnapshots(
    const std::string& parent,
    const std::function<void(const std::string&)>& log,
    const LeaseRules& rules) {
  std::vector<std::string> paths;
  Status status = ListPrivateDirs(parent, &paths);
  for (const std::string& path : paths) {
    bool removed = false;
    const Status one = RemoveIfAbandoned(path, rules, &removed);
    if (!one.ok()) {
      status = one;
    } else if (removed && log) {
      log("removed a snapshot without a valid lease: " + path);
    }
  }
  return status;
}

void RemoveLeftovers(const std::string& parent, const LogFunction& log) {
  FileId found;
  Status status = FileIdOf(parent, &found);
  if (status.ok() && !found.exists()) {
    return;
  }
  if (status.ok()) {
    status = RemoveLeftoverSnapshots(parent, [&log](const std::string& line) {
      if (log) log(LogLevel::kInfo, line);
    });
  }
  if (!status.ok() && log) log(LogLevel::kWarning, MessageOf(status));
}

}  // namespace sstferry
