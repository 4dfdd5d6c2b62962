// File operations for snapshots, on plain paths. The code does not use
// RocksDB's Env for this. Some of these operations work in the directory of the
// source's database, where the Env could have harmful side effects.
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

// Opens a file in a snapshot's private directory. Does not repeat the checks of
// OpenForeign(). This process made these checks when it created the links, and
// only this process creates names in the directory.
[[nodiscard]] rocksdb::Status OpenPrivate(const std::string& path,
                                          Descriptor* out);

// Opens a directory that belongs to this process's account and that no other
// account can write to. Does not follow symbolic links. On failure, the result
// is not open, and errno has the reason.
Descriptor OpenOwnDirectory(const std::string& path);
// Opens a subdirectory of an open directory, with the same checks.
Descriptor OpenOwnDirectoryIn(const Descriptor& parent,
                              const std::string& name);
// Removes a file. If the file does not exist, returns OK.
[[nodiscard]] rocksdb::Status RemoveFile(const std::string& path);
// Removes all files and subdirectories in an open directory. Does not follow
// symbolic links. Ignores names that another process has removed meanwhile.
[[nodiscard]] rocksdb::Status EmptyDirectory(int directory,
                                             const std::string& path);
// Removes one name in `directory`: a file, a link, or a directory with its
// contents.
[[nodiscard]] rocksdb::Status RemoveIn(int directory, const std::string& name,
                                       const std::string& path);

// Makes a path in a message understandable for the operator. Replaces the path
// `from`, which is that of a private copy or an open directory, by `to`.
std::string RenamePath(std::string text, const std::string& from,
                       const std::string& to);

// Changes the message of a failure to read a snapshot, so that it has paths
// that the operator knows. `own` is the path of the private directory's db/,
// with a slash at its end, or empty. `dir` is the database's directory.
// Replaces `own` by `dir`, because the private directory is removed with the
// snapshot. If the status is kCorrupt and the message does not contain `dir`,
// puts `dir` at its beginning.
rocksdb::Status InDatabaseNames(const rocksdb::Status& status,
                                const std::string& own, const std::string& dir);

// Sets *uid to the account that owns a directory. Fails if `directory` is a
// symbolic link.
[[nodiscard]] rocksdb::Status OwnerOf(const std::string& directory,
                                      uint32_t* uid);

// Finds the real path of a database's directory.
//   kSourceError  A symbolic link on the path belongs neither to the owner of
//                 the directory, nor to root, nor to this process. Without this
//                 rule, an application could present the database of another
//                 application as its own.
//                 Or `given` is not a directory, or not a database of RocksDB;
//                 the message says which.
[[nodiscard]] rocksdb::Status ResolveDatabase(const std::string& given,
                                              std::string* real);

// Identity, size and modification time of a file. If there is no file, the
// inode is 0.
struct FileId {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t bytes = 0;
  uint64_t modified_ns = 0;  // nanoseconds since 1970; 0: unknown
  bool exists() const { return inode != 0; }
  bool IsSameFile(const FileId& other) const {
    return exists() && device == other.device && inode == other.inode;
  }
};

// Look up a file and set *id; the inode is 0 only if the file does not exist.
// If the last component of the path is a symbolic link, FileIdOf() follows it,
// and the other functions return the id of the link itself. On a network file
// system, all of them ask the server, because the client's cache may be some
// seconds old.
//   kSourceError  the file could not be looked up
[[nodiscard]] rocksdb::Status FileIdOf(const std::string& path, FileId* id);
[[nodiscard]] rocksdb::Status FileIdOfName(const std::string& path,
                                           FileId* id);
[[nodiscard]] rocksdb::Status FileIdOfNameIn(const Descriptor& parent,
                                             const std::string& name,
                                             FileId* id);
// Looks up an open file. `path` is used only in messages.
[[nodiscard]] rocksdb::Status FileIdOf(int fd, const std::string& path,
                                       FileId* id);

// Sets *is_named to true if `path` is a name of the open file `fd`. A symbolic
// link at the path is not such a name.
[[nodiscard]] rocksdb::Status IsNamed(int fd, const std::string& path,
                                      bool* is_named);

// Reads the first `bytes` bytes of an open file. The file must have at least
// this size, according to FileIdOf().
class DescriptorSource : public ByteSource {
 public:
  // Borrows `fd`. Messages contain `name`.
  DescriptorSource(int fd, std::string name, uint64_t bytes)
      : fd_(fd), name_(std::move(name)), bytes_(bytes) {}
  // Reads a part of the file. Returns kSourceError on failure. Returns TryAgain
  // if the file has become shorter because its owner truncated it.
  [[nodiscard]] rocksdb::Status Read(uint64_t offset, size_t n,
                                     std::string* scratch,
                                     rocksdb::Slice* out) const override;
  uint64_t size() const override { return bytes_; }

 private:
  const int fd_;
  const std::string name_;
  const uint64_t bytes_;
};

// Copies the first `bytes` bytes of an open file to the new file `to`. If the
// file's owner has truncated it meanwhile, *copied is less than `bytes`.
// Messages contain `from`.
[[nodiscard]] rocksdb::Status CopyPrefix(int from_fd, const std::string& from,
                                         const std::string& to, uint64_t bytes,
                                         uint64_t* copied);

// Returns true if the file system of `path` is mounted read-only.
bool IsOnReadOnlyFileSystem(const std::string& path);

// Makes a hard link `to` to a database's file `from`. If `from` does not exist,
// sets *found to false. Fails for a file that OpenForeign() would reject. If
// the error is EXDEV or EPERM, the message says what the operator can do.
//
// If `from` is on a read-only file system and cannot be hard-linked, makes a
// symbolic link with the file's modification time instead. A symbolic link does
// not keep the file alive: a process that has the same file system mounted
// writable can remove the file. CheckLinkedFiles() detects this.
[[nodiscard]] rocksdb::Status LinkFile(const std::string& from,
                                       const std::string& to, bool* found);

// Checks the symbolic links that LinkFile() made in a directory. Each must
// still lead to the same file as when it was made.
//   kSourceError  a file was removed or replaced
[[nodiscard]] rocksdb::Status CheckLinkedFiles(const std::string& directory);

[[nodiscard]] rocksdb::Status WriteSmallFile(const std::string& path,
                                             const std::string& contents);

// Returns the number of bytes that this user may allocate on the file system of
// `path`. Subtracts `kept_percent` percent of the file system's size.
uint64_t FreeBytesAbove(const std::string& path, double kept_percent = 0);

}  // namespace sstferry
