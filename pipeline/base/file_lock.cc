#include "pipeline/base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "format/end_state.h"
#include "pipeline/base/open_file.h"

namespace sstferry {

using rocksdb::Status;

namespace {

constexpr int kTries = 10;
// Larger than kTries, because another process may sync a file to the disk while
// it holds a directory's lock.
constexpr int kDirectoryTries = 1000;
constexpr std::chrono::milliseconds kBetween{10};

bool MayNotWrite(int error) {
  return error == EACCES || error == EPERM || error == EROFS;
}

Status LockWithin(int fd, int tries, const std::string& path) {
  for (int i = 0; i < tries; ++i) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
      return Status::OK();
    }
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return ErrnoStatus(EndState::kInternal, "cannot lock", path, errno);
    }
    std::this_thread::sleep_for(kBetween);
  }
  return MakeStatus(EndState::kBusy, "another process has locked " + path);
}

}  // namespace

Descriptor OpenToLock(const std::string& path) {
  Descriptor file = OpenPath(path, O_RDWR);
  return file.is_open() || !MayNotWrite(errno)
             ? std::move(file)
             : OpenPath(path, O_RDONLY);
}

Status LockFile(int fd, const std::string& path) {
  return LockWithin(fd, kTries, path);
}

bool IsFileLocked(const std::string& path) {
  const Descriptor file = OpenPath(path, O_RDONLY);
  return file.is_open() && flock(file.get(), LOCK_SH | LOCK_NB) != 0 &&
         errno == EWOULDBLOCK;
}

// Opens and locks the directory. If another directory has got the name `dir`
// meanwhile, starts over with that directory.
Status LockDirectory(const std::string& dir, Descriptor* lock) {
  while (true) {
    *lock = Descriptor();
    Descriptor opened = OpenPath(dir, O_RDONLY | O_DIRECTORY);
    if (!opened.is_open()) {
      return errno == ENOENT ? Status::OK()
                             : ErrnoStatus(EndState::kInternal, "cannot open",
                                           dir, errno);
    }
    RETURN_IF_ERROR(LockWithin(opened.get(), kDirectoryTries, dir));
    struct stat locked;
    struct stat named;
    if (fstat(opened.get(), &locked) != 0) {
      return ErrnoStatus(EndState::kInternal, "cannot lock", dir, errno);
    }
    if (stat(dir.c_str(), &named) == 0 && locked.st_dev == named.st_dev &&
        locked.st_ino == named.st_ino) {
      *lock = std::move(opened);
      return Status::OK();
    }
  }
}

}  // namespace sstferry
