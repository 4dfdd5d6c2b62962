// Descriptors, and directories that are named by them: whoever may change names
// on the way to a directory cannot lead elsewhere what is opened below one. With
// base/open_file.h, which checks files that others may have put there, this is
// the only place where files are opened.
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
  // Returns it, for a caller that closes it.
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// Opens the directory of a real path, to name files in it: a symbolic link that
// somebody has put in the place of any of its parts since it was resolved is
// not followed. Kernels before 5.6 see one in the last part only. errno says
// why it did not.
Descriptor OpenDirectory(const std::string& path);

// Opens a name in an open directory, with flags and mode as openat() takes them.
// No child inherits it, a symbolic link of that name is not followed, and it
// waits for nobody (a FIFO). `name` is one name, or ".". errno says why it did
// not.
Descriptor OpenIn(int directory, const std::string& name, int flags,
                  mode_t mode = 0);

// Opens a directory in an open one by OpenIn(), to read names or to sync it.
Descriptor OpenDirectoryIn(int directory, const std::string& name);

// Does the same as OpenIn() for a path whose directory nobody else may change.
Descriptor OpenPath(const std::string& path, int flags, mode_t mode = 0);

// Follows a symbolic link, too: one that the operator or this process made.
Descriptor OpenLinked(const std::string& path, int flags, mode_t mode = 0);

// Reads a file of the kernel's, "self/status" of /proc for example; empty if it
// cannot. Of a longer one the beginning.
std::string ReadProc(const std::string& name);

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};
using DirectoryStream = std::unique_ptr<DIR, CloseDirectory>;

// Opens a stream of the names in an open directory; null: errno says why.
DirectoryStream NamesIn(int directory);

// Returns a path by which this process, and no other, names an open directory,
// whatever becomes of its name.
std::string PathOfOpen(const Descriptor& directory);

// Returns a path that begins with a PathOfOpen() by the name that the directory
// has now, for messages; others as they are.
std::string ShownPath(const std::string& path);

}  // namespace sstferry
