// Opens files and directories relative to open directories, so that an account
// that renames directories on the way cannot redirect what is opened below
// them. Files are opened only here and in base/open_file.h, which checks files
// that other accounts may have put there.
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

// Opens the directory of a resolved path, to name files in it. Does not follow
// a symbolic link that replaced a component since the path was resolved;
// kernels before 5.6 detect only a link in the last component. On failure errno
// says why.
Descriptor OpenDirectory(const std::string& path);

// Opens a name in an open directory, with flags and mode as openat() takes
// them. Children do not inherit the descriptor, a symbolic link of that name is
// not followed, and a FIFO does not block. `name` is one name, or ".". On
// failure errno says why.
Descriptor OpenIn(int directory, const std::string& name, int flags,
                  mode_t mode = 0);

// Opens a subdirectory as OpenIn() does, to list or sync it.
Descriptor OpenDirectoryIn(int directory, const std::string& name);

// Does the same as OpenIn() for a path whose directory only this account may
// change.
Descriptor OpenPath(const std::string& path, int flags, mode_t mode = 0);

// Also follows a symbolic link, which the operator or this process must have
// made.
Descriptor OpenLinked(const std::string& path, int flags, mode_t mode = 0);

// Reads a file of the kernel, for example "self/status" of /proc. Returns only
// the beginning of a long file, and an empty string on failure.
std::string ReadProc(const std::string& name);

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};
using DirectoryStream = std::unique_ptr<DIR, CloseDirectory>;

// Opens a stream of the names in an open directory. Null on failure; errno says
// why.
DirectoryStream NamesIn(int directory);

// Returns a path that names an open directory inside this process, even after
// the directory was renamed.
std::string PathOfOpen(const Descriptor& directory);

// Replaces a PathOfOpen() at the beginning of a path by the directory's present
// name, for messages. Returns other paths unchanged.
std::string ShownPath(const std::string& path);

}  // namespace sstferry
