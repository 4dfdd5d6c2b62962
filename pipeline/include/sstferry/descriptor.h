// Opens files relative to open directories, so that an account that renames a
// directory on the path cannot redirect the open. Only this file and
// base/open_file.h open files; open_file.h checks files that other accounts may
// have created.
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
  // Gives up ownership: the caller closes the descriptor.
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// Opens the directory at a resolved path. Fails if a symbolic link has replaced
// a component since the path was resolved; kernels before 5.6 detect this only
// in the last component. On failure errno says why.
Descriptor OpenDirectory(const std::string& path);

// Opens `name`, which is one component or ".", in an open directory; flags and
// mode are those of openat(). Child processes do not inherit the descriptor, a
// symbolic link is not followed, and a FIFO does not block. On failure errno
// says why.
Descriptor OpenIn(int directory, const std::string& name, int flags,
                  mode_t mode = 0);

// Opens a subdirectory like OpenIn(), to list or sync it.
Descriptor OpenDirectoryIn(int directory, const std::string& name);

// Opens a path like OpenIn(). Only this account may be able to change the
// path's directory.
Descriptor OpenPath(const std::string& path, int flags, mode_t mode = 0);

// Opens a path, and follows a symbolic link at its end. The operator or this
// process must have made the link.
Descriptor OpenLinked(const std::string& path, int flags, mode_t mode = 0);

// Reads a file of /proc, for example "self/status". Returns an empty string on
// failure. If a file is long, returns its beginning, of at least kMaxProcBytes.
inline constexpr size_t kMaxProcBytes = 4u << 20;
std::string ReadProc(const std::string& name);

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};
using DirectoryStream = std::unique_ptr<DIR, CloseDirectory>;

// Opens a stream of the names in an open directory. Returns null on failure;
// errno says why.
DirectoryStream NamesIn(int directory);

// Returns a path to an open directory that is valid in this process, even after
// the directory was renamed.
std::string PathOfOpen(const Descriptor& directory);

// Replaces a PathOfOpen() prefix of a path with the directory's current path,
// for messages. Returns other paths unchanged.
std::string ShownPath(const std::string& path);

}  // namespace sstferry
