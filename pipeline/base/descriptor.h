// Descriptors, and directories that are named by them: whoever may change names
// on the way to a directory cannot lead elsewhere what is opened below one.
#pragma once

#include <string>

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

 private:
  int fd_;
};

// Opens the directory of a real path, to name files in it: a symbolic link that
// somebody has put in the place of any of its parts since it was resolved is
// not followed. Kernels before 5.6 see one in the last part only. errno says
// why it did not.
Descriptor OpenDirectory(const std::string& path);

// Returns a path by which this process, and no other, names an open directory,
// whatever becomes of its name.
std::string PathOfOpen(const Descriptor& directory);

// Returns a path that begins with a PathOfOpen() by the name that the directory
// has now, for messages; others as they are.
std::string ShownPath(const std::string& path);

}  // namespace sstferry
