#include "sstferry/descriptor.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <utility>

namespace sstferry {
namespace {

constexpr char kOpenPaths[] = "/proc/self/fd/";
constexpr int kAlways = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

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

Descriptor OpenIn(int directory, const std::string& name, int flags,
                  mode_t mode) {
  if (name.empty() || name == ".." || name.find('/') != std::string::npos) {
    errno = EINVAL;
    return Descriptor();
  }
  return Descriptor(
      openat(directory, name.c_str(), flags | kAlways | O_NOFOLLOW, mode));
}

Descriptor OpenDirectoryIn(int directory, const std::string& name) {
  return OpenIn(directory, name, O_RDONLY | O_DIRECTORY);
}

Descriptor OpenPath(const std::string& path, int flags, mode_t mode) {
  return OpenLinked(path, flags | O_NOFOLLOW, mode);
}

Descriptor OpenLinked(const std::string& path, int flags, mode_t mode) {
  return Descriptor(open(path.c_str(), flags | kAlways, mode));
}

std::string ReadProc(const std::string& name) {
  const Descriptor file = OpenPath("/proc/" + name, O_RDONLY);
  std::string text;
  std::array<char, 4096> buffer;
  while (file.is_open() && text.size() < kMaxProcBytes) {
    const ssize_t got = read(file.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(buffer.data(), static_cast<size_t>(got));
  }
  return text;
}

DirectoryStream NamesIn(int directory) {
  // Open the directory again for the stream: readdir() moves the position of
  // the descriptor that it reads.
  Descriptor listed = OpenDirectoryIn(directory, ".");
  DirectoryStream names(listed.is_open() ? fdopendir(listed.get()) : nullptr);
  if (names != nullptr) listed.Release();
  return names;
}

std::string ShownPath(const std::string& path) {
  if (path.rfind(kOpenPaths, 0) != 0) {
    return path;
  }
  const size_t slash = path.find('/', sizeof(kOpenPaths) - 1);
  char name[PATH_MAX];
  const ssize_t bytes =
      readlink(path.substr(0, slash).c_str(), name, sizeof(name));
  if (bytes <= 0 || slash == std::string::npos) {
    return path;
  }
  std::string rest = path.substr(slash);
  if (rest == "/." || rest.rfind("/./", 0) == 0) {
    rest.erase(0, 2);
  }
  return std::string(name, static_cast<size_t>(bytes)) + rest;
}

std::string PathOfOpen(const Descriptor& directory) {
  // With "/." at its end, the path is that of a directory and not of a link.
  return kOpenPaths + std::to_string(directory.get()) + "/.";
}

}  // namespace sstferry
