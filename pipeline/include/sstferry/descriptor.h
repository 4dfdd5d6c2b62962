// Opens files relative to an open directory. Another account can then not
// redirect the open by renaming a directory on the path. Only this file and
// base/open_file.h open files. open_file.h also checks files that other
// accounts may have created.
#pragma once

#include <dirent.h>
#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>

namespace sstferry {

// Owns an open file descriptor and closes it.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  // Returns the descriptor and gives up ownership. The caller must close it.
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// Opens the directory at a path without symbolic links. Fails if a symbolic
// link has replaced a component of the path meanwhile. (Linux before 5.6
// detects this only in the last component.) On failure, errno has the reason.
Descriptor OpenDirectory(const std::string& path);

// Opens `name` in an open directory; `name` is one component or ".". flags and
// mode have the same meaning as for openat(). Does not follow a symbolic link
// and does not block on a FIFO. Child processes do not inherit the descriptor.
// On failure, errno has the reason.
Descriptor OpenIn(int directory, const std::string& name, int flags,
                  mode_t mode = 0);

// Opens a subdirectory in the same way, so that it can be listed or synced.
Descriptor OpenDirectoryIn(int directory, const std::string& name);

// Opens a path in the same way. No other account may be able to change names in
// the directory that has the file.
Descriptor OpenPath(const std::string& path, int flags, mode_t mode = 0);

// Opens a path, and follows a symbolic link in its last component. The operator
// or this process must have created the link.
Descriptor OpenLinked(const std::string& path, int flags, mode_t mode = 0);

// Reads a file of /proc, for example "self/status". Returns an empty string on
// failure. If a file is long, returns its beginning, of at least kMaxProcBytes.
inline constexpr size_t kMaxProcBytes = 64u << 20;
std::string ReadProc(const std::string& name);

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};
using DirectoryStream = std::unique_ptr<DIR, CloseDirectory>;

// Returns a stream of the names in an open directory. On failure, returns null
// and errno has the reason.
DirectoryStream NamesIn(int directory);

// Returns a path by which this process can reach an open directory. The path
// stays valid if the directory is renamed.
std::string PathOfOpen(const Descriptor& directory);

// Makes a path from PathOfOpen() readable for a message: replaces its beginning
// with the directory's current path. Returns other paths unchanged.
std::string ShownPath(const std::string& path);

}  // namespace sstferry
