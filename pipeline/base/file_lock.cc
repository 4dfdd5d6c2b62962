#include "pipeline/base/file_lock.h"
#include "sstferry/descriptor.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

namespace sstferry {
namespace {

constexpr int kTries = 10;
constexpr std::chrono::milliseconds kBetween{10};

}  // namespace

bool LockFile(int fd) {
  for (int i = 0; i < kTries; ++i) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
      return true;
    }
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return false;
    }
    std::this_thread::sleep_for(kBetween);
  }
  return false;
}

bool IsFileLocked(const std::string& path) {
  const Descriptor file = OpenPath(path, O_RDONLY);
  return file.is_open() && flock(file.get(), LOCK_SH | LOCK_NB) != 0 &&
         errno == EWOULDBLOCK;
}

}  // namespace sstferry
