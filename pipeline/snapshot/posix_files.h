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

// Maximum of an OPTIONS file, which grows with the families.
inline constexpr uint64_t kMaxOptionsFileBytes = 256u << 20;
// Maximum of CURRENT and IDENTITY, which are one line each.
inline constexpr uint64_t kMaxIdentityBytes = 64u << 10;

// Opens a file of a snapshot's private directory, where only this process makes
// names; its links lead to files that were checked when they were made.
[[nodiscard]] rocksdb::Status OpenPrivate(const std::string& path,
                                          Descriptor* out);

// Opens a directory that belongs to this process's account alone; errno says
// why it did not. A symbolic link, also one on the way, is none.
Descriptor OpenOwnDirectory(const std::string& path);
// The same of a name in an open directory.
Descriptor OpenOwnDirectoryIn(const Descriptor& parent,
                              const std::string& name);
// Removes everything in an open directory and follows no symbolic link; a name
// that is gone is no error.
[[nodiscard]] rocksdb::Status EmptyDirectory(int directory,
                                             const std::string& path);
// Removes one name in it: a file, a link, or a directory with all it holds.
[[nodiscard]] rocksdb::Status RemoveIn(int directory, const std::string& name,
                                       const std::string& path);

// Finds the account that owns a directory; a symbolic link is none.
[[nodiscard]] rocksdb::Status OwnerOf(const std::string& directory,
                                      uint32_t* uid);

// Finds the real path of a database's directory.
//   kSourceError  a symbolic link on the way is neither of the directory's
//                 owner nor of root or this process: an application must not
//                 give another one's database as its own.
//                 It is no directory, or not RocksDB's: the message says what.
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
FileId FileIdOfName(const std::string& path);  // of a link itself
FileId FileIdOf(int fd);
FileId FileIdOfNameIn(const Descriptor& parent, const std::string& name);

// Reads an open file that may grow: size() is the size at the time of the call.
class DescriptorSource : public ByteSource {
 public:
  // Borrows `fd`. `name` is used in messages.
  DescriptorSource(int fd, std::string name)
      : fd_(fd), name_(std::move(name)) {}
  // kSourceError; TryAgain if the owner truncated the file meanwhile.
  [[nodiscard]] rocksdb::Status Read(uint64_t offset, size_t n,
                                     std::string* scratch,
                                     rocksdb::Slice* out) const override;
  uint64_t size() const override { return FileIdOf(fd_).bytes; }

 private:
  const int fd_;
  const std::string name_;
};

// Lists the names in a directory without "." and "..", sorted. `path` is a real
// one. kSourceError.
[[nodiscard]] rocksdb::Status ListDirectory(const std::string& path,
                                            std::vector<std::string>* names);

// Copies the first `bytes` of an open file; `from` is used in messages. `to`
// must not exist. *copied is less than `bytes` if the owner truncated the file
// meanwhile.
[[nodiscard]] rocksdb::Status CopyPrefix(int from_fd, const std::string& from,
                                         const std::string& to, uint64_t bytes,
                                         uint64_t* copied);

// True if nothing can be written, removed or renamed where `path` is mounted.
bool IsOnReadOnlyFileSystem(const std::string& path);

// Makes a hard link to a file of a database, which must be one that
// OpenForeign() opens; or, where `from` is on a read-only file system, a
// symbolic one, which pins nothing: nobody can remove the file there, unless
// the same file system is mounted elsewhere, too. The symbolic link gets the
// time of the file's last write. For EXDEV and EPERM the kSourceError says what
// to do.
[[nodiscard]] rocksdb::Status LinkFile(const std::string& from,
                                       const std::string& to, bool* found);

// Checks that the symbolic links of LinkFile() in a directory lead to the files
// that were linked.
//   kSourceError  one is gone, or another one has its name
[[nodiscard]] rocksdb::Status CheckLinkedFiles(const std::string& directory);

[[nodiscard]] rocksdb::Status WriteSmallFile(const std::string& path,
                                             const std::string& contents);

// Bytes free for this user on the file system that holds `path`, above so much
// of it.
uint64_t FreeBytesAbove(const std::string& path, double kept_percent = 0);

}  // namespace sstferry
