// File operations for snapshots, on plain paths. They do not use RocksDB's Env,
// because they work in the source's own directory and must do exactly what they
// say there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/byte_source.h"
#include "format/end_state.h"
#include "pipeline/base/open_file.h"
#include "rocksdb/status.h"
#include "sstferry/descriptor.h"

namespace sstferry {

// Maximum size of an OPTIONS file, which grows with the number of families.
inline constexpr uint64_t kMaxOptionsFileBytes = 256u << 20;
// Maximum size of CURRENT and IDENTITY, which have one line each.
inline constexpr uint64_t kMaxIdentityBytes = 64u << 10;

// Opens a file of a snapshot's private directory. Only this process creates
// names there; the files to which its links lead were checked when it linked
// them.
[[nodiscard]] rocksdb::Status OpenPrivate(const std::string& path,
                                          Descriptor* out);

// Opens a directory that belongs to this process's account and that no other
// account can write to. Follows no symbolic link. If it cannot be opened, the
// result is not open and errno has the reason.
Descriptor OpenOwnDirectory(const std::string& path);
// Does the same for a name in an open directory.
Descriptor OpenOwnDirectoryIn(const Descriptor& parent,
                              const std::string& name);
// Removes everything in an open directory and follows no symbolic link. A name
// that was removed meanwhile is no error.
[[nodiscard]] rocksdb::Status EmptyDirectory(int directory,
                                             const std::string& path);
// Removes one name in `directory`: a file, a link, or a directory with its
// contents.
[[nodiscard]] rocksdb::Status RemoveIn(int directory, const std::string& name,
                                       const std::string& path);

// Replaces the path of a private copy or an open directory in a message by the
// path that the operator knows.
std::string RenamePath(std::string text, const std::string& from,
                       const std::string& to);

// Finds the account that owns a directory; a symbolic link is an error.
[[nodiscard]] rocksdb::Status OwnerOf(const std::string& directory,
                                      uint32_t* uid);

// Finds the real path of a database's directory.
//   kSourceError  a symbolic link on the way belongs neither to the directory's
//                 owner nor to root or this process: an application must not
//                 pass off another application's database as its own. Or it is
//                 not a directory, or not RocksDB's; the message says which.
[[nodiscard]] rocksdb::Status ResolveDatabase(const std::string& given,
                                              std::string* real);

// Identity, size and last write of a file. Inode 0: the file does not exist.
struct FileId {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t bytes = 0;
  uint64_t modified_ns = 0;  // since 1970; 0: not known
  bool exists() const { return inode != 0; }
  bool IsSameFile(const FileId& other) const {
    return exists() && device == other.device && inode == other.inode;
  }
};
FileId FileIdOf(const std::string& path);
FileId FileIdOfName(const std::string& path);  // lstat(): of the link itself
FileId FileIdOf(int fd);
FileId FileIdOfNameIn(const Descriptor& parent, const std::string& name);

// Reads an open file that may grow; size() asks for the current size.
class DescriptorSource : public ByteSource {
 public:
  // Borrows `fd`; messages contain `name`.
  DescriptorSource(int fd, std::string name)
      : fd_(fd), name_(std::move(name)) {}
  // Returns kSourceError, or TryAgain if the owner truncated the file
  // meanwhile.
  [[nodiscard]] rocksdb::Status Read(uint64_t offset, size_t n,
                                     std::string* scratch,
                                     rocksdb::Slice* out) const override;
  uint64_t size() const override { return FileIdOf(fd_).bytes; }

 private:
  const int fd_;
  const std::string name_;
};

// Lists the names in a directory except "." and "..", sorted. `path` is a real
// path. kSourceError: the directory cannot be read.
[[nodiscard]] rocksdb::Status ListDirectory(const std::string& path,
                                            std::vector<std::string>* names);

// Copies the first `bytes` of an open file; messages contain `from`. `to` must
// not exist. *copied is less than `bytes` if the owner truncated the file
// meanwhile.
[[nodiscard]] rocksdb::Status CopyPrefix(int from_fd, const std::string& from,
                                         const std::string& to, uint64_t bytes,
                                         uint64_t* copied);

// Returns true if the file system of `path` is mounted read-only, so that
// nothing can be written, removed or renamed there.
bool IsOnReadOnlyFileSystem(const std::string& path);

// Makes a hard link to a file of a database; fails for a file that
// OpenForeign() would not open. If `from` is on a read-only file system, makes
// a symbolic link instead. That pins nothing: nobody can remove the file
// through this mount, but somebody can if the same file system is also mounted
// elsewhere. The symbolic link gets the file's modification time. After EXDEV
// and EPERM the message of the kSourceError says how to proceed. *found is
// false if `from` does not exist.
[[nodiscard]] rocksdb::Status LinkFile(const std::string& from,
                                       const std::string& to, bool* found);

// Checks that the symbolic links of LinkFile() in a directory still lead to the
// files that were linked.
//   kSourceError  a file was removed or replaced
[[nodiscard]] rocksdb::Status CheckLinkedFiles(const std::string& directory);

[[nodiscard]] rocksdb::Status WriteSmallFile(const std::string& path,
                                             const std::string& contents);

// Returns the bytes that this user may allocate on the file system of `path`,
// minus `kept_percent` of its size.
uint64_t FreeBytesAbove(const std::string& path, double kept_percent = 0);

}  // namespace sstferry
