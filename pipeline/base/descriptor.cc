#include "pipeline/base/descriptor.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace sstferry {
namespace {

constexpr char kOpenPaths[] = "/proc/self/fd/";

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

Descriptor OpenDirectory(const std::string& path) {
  constexpr int kFlags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  if (path.rfind(kOpenPaths, 0) == 0) {
    return Descriptor(open(path.c_str(), kFlags));
  }
  open_how how = {};
  how.flags = kFlags;
  how.resolve = RESOLVE_NO_SYMLINKS;
  const long directory =
      syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof(how));
  if (directory >= 0 || (errno != ENOSYS && errno != EPERM)) {
    return Descriptor(static_cast<int>(directory));
  }
  return Descriptor(open(path.c_str(), kFlags));
}

std::string PathOfOpen(const Descriptor& directory) {
  // The dot: the last part of the path is no link.
  return kOpenPaths + std::to_string(directory.get()) + "/.";
}

}  // namespace sstferry
