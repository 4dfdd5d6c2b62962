// File operations for snapshots, on plain paths. They do not use RocksDB's Env,
// because they work in the source's own directory, where any side effect would
// be harmful.
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

// Opens a file of a snapshot's private directory, without the checks of
// OpenForeign(): only this process creates names there, and it made these
// checks when it created the links.
[[nodiscard]] rocksdb::Status OpenPrivate(const std::string& path,
                                          Descriptor* out);

// Opens a directory that belongs to this process's account and that no other
// account can write to. Does not follow symbolic links. On failure the result
// is not open, and errno has the reason.
Descriptor OpenOwnDirectory(const std::string& path);
// Opens a subdirectory in an open directory by the same rules.
Descriptor OpenOwnDirectoryIn(const Descriptor& parent,
                              const std::string& name);
// Removes a file; one that does not exist is not an error.
[[nodiscard]] rocksdb::Status RemoveFile(const std::string& path);
// Removes everything in an open directory; does not follow symbolic links. A
// name that was removed meanwhile is not an error.
[[nodiscard]] rocksdb::Status EmptyDirectory(int directory,
                                             const std::string& path);
// Removes one name in `directory`: a file, a link, or a directory with its
// contents.
[[nodiscard]] rocksdb::Status RemoveIn(int directory, const std::string& name,
                                       const std::string& path);

// Replaces the path `from` of a private copy or an open directory in a message
// with the path `to` that the operator knows.
std::string RenamePath(std::string text, const std::string& from,
                       const std::string& to);

// Makes the message of a failure to read a snapshot useful to the operator:
// replaces the path `own` ("PATH/db/", or empty) of the private directory,
// which is removed with the snapshot, by the database's directory `dir`. If the
// status is kCorrupt and the message does not contain `dir`, puts `dir` before
// it.
rocksdb::Status InDatabaseNames(const rocksdb::Status& status,
                                const std::string& own, const std::string& dir);

// Finds the account that owns a directory; a symbolic link is an error.
[[nodiscard]] rocksdb::Status OwnerOf(const std::string& directory,
                                      uint32_t* uid);

// Finds the real path of a database's directory.
//   kSourceError  a symbolic link on the path belongs neither to the
//                 directory's owner nor to root or this process: an application
//                 must not pass off another application's database as its own.
//                 Or `given` is not a directory, or not RocksDB's; the message
//                 says which.
[[nodiscard]] rocksdb::Status ResolveDatabase(const std::string& given,
                                              std::string* real);

// Identity, size and modification time of a file. Inode 0: there is no such
// file.
struct FileId {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t bytes = 0;
  uint64_t modified_ns = 0;  // since 1970; 0: unknown
  bool exists() const { return inode != 0; }
  bool IsSameFile(const FileId& other) const {
    return exists() && device == other.device && inode == other.inode;
  }
};

// Find a file. FileIdOf() follows a symbolic link at the end of a path, the
// others find the link itself. All ask the server of a network file system,
// because its client may have an answer that is some seconds old. The inode is
// 0 only if the file does not exist.
//   kSourceError  the file could not be looked up
[[nodiscard]] rocksdb::Status FileIdOf(const std::string& path, FileId* id);
[[nodiscard]] rocksdb::Status FileIdOfName(const std::string& path,
                                           FileId* id);
[[nodiscard]] rocksdb::Status FileIdOfNameIn(const Descriptor& parent,
                                             const std::string& name,
                                             FileId* id);
// Finds an open file; `path` is for the message.
[[nodiscard]] rocksdb::Status FileIdOf(int fd, const std::string& path,
                                       FileId* id);

// Finds out if `path` names the open file `fd`, not through a link.
[[nodiscard]] rocksdb::Status IsNamed(int fd, const std::string& path,
                                      bool* is_named);

// Reads the first `bytes` bytes of an open file, which has at least this size
// according to FileIdOf().
class DescriptorSource : public ByteSource {
 public:
  // Borrows `fd`; messages contain `name`.
  DescriptorSource(int fd, std::string name, uint64_t bytes)
      : fd_(fd), name_(std::move(name)), bytes_(bytes) {}
  // Returns kSourceError, or TryAgain if the owner truncated the file
  // meanwhile.
  [[nodiscard]] rocksdb::Status Read(uint64_t offset, size_t n,
                                     std::string* scratch,
                                     rocksdb::Slice* out) const override;
  uint64_t size() const override { return bytes_; }

 private:
  const int fd_;
  const std::string name_;
  const uint64_t bytes_;
};

// Copies the first `bytes` of an open file; messages contain `from`. `to` must
// not exist. *copied is less than `bytes` if the owner truncated the file
// meanwhile.
[[nodiscard]] rocksdb::Status CopyPrefix(int from_fd, const std::string& from,
                                         const std::string& to, uint64_t bytes,
                                         uint64_t* copied);

// Returns true if the file system of `path` is mounted read-only, so that
// nothing can be written, removed or renamed on it.
bool IsOnReadOnlyFileSystem(const std::string& path);

// Makes a hard link to a database's file. Fails for a file that OpenForeign()
// would reject. If `from` is on a read-only file system, makes a symbolic link
// instead, with the file's modification time. A symbolic link pins nothing: the
// file cannot be removed through this mount, but it can if the same file system
// is also mounted elsewhere. After EXDEV and EPERM the message of the
// kSourceError says how to proceed. *found is false if `from` does not exist.
[[nodiscard]] rocksdb::Status LinkFile(const std::string& from,
                                       const std::string& to, bool* found);

// Checks that the symbolic links that LinkFile() made in a directory still lead
// to the same files.
//   kSourceError  a file was removed or replaced
[[nodiscard]] rocksdb::Status CheckLinkedFiles(const std::string& directory);

[[nodiscard]] rocksdb::Status WriteSmallFile(const std::string& path,
                                             const std::string& contents);

// Returns the bytes that this user may allocate on the file system of `path`,
// minus `kept_percent` percent of the file system's size.
uint64_t FreeBytesAbove(const std::string& path, double kept_percent = 0);

}  // namespace sstferry
