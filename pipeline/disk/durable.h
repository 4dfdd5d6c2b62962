// Durable steps of a target: sync, write, rename and remove, all through a
// rocksdb::FileSystem. Error messages contain the path.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "rocksdb/file_system.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// A file system with two kinds of rename and with symbolic links, which
// rocksdb::FileSystem lacks. A file system that must see all changes of names
// derives from this class and overrides them. For other file systems, the
// functions below call the kernel.
// NotSupported: the underlying file system has no such rename.
class RenamingFileSystem : public rocksdb::FileSystemWrapper {
 public:
  using FileSystemWrapper::FileSystemWrapper;
  static const char* kClassName() { return "sstferry.Renaming"; }
  bool IsInstanceOf(const std::string& name) const override {
    return name == kClassName() || FileSystemWrapper::IsInstanceOf(name);
  }
  // Exchanges two names atomically. REQUIRES: both names exist.
  virtual rocksdb::IOStatus ExchangeNames(const std::string& a,
                                          const std::string& b);
  // Renames `from`; fails if anything exists at `to`.
  virtual rocksdb::IOStatus RenameToNew(const std::string& from,
                                        const std::string& to);
  // Creates a symbolic link with the text `to`; fails if `path` exists.
  virtual rocksdb::IOStatus LinkSymbolically(const std::string& to,
                                             const std::string& path);
};

[[nodiscard]] rocksdb::Status ExchangeNames(rocksdb::FileSystem* file_system,
                                            const std::string& a,
                                            const std::string& b);
[[nodiscard]] rocksdb::Status RenameToNew(rocksdb::FileSystem* file_system,
                                          const std::string& from,
                                          const std::string& to);
[[nodiscard]] rocksdb::Status LinkSymbolically(rocksdb::FileSystem* file_system,
                                               const std::string& to,
                                               const std::string& path);

// Syncs a file. REQUIRES: no process has it open for writing.
[[nodiscard]] rocksdb::Status SyncFile(rocksdb::FileSystem* file_system,
                                       const std::string& path);

// Syncs a directory, which makes the names in it durable.
[[nodiscard]] rocksdb::Status SyncDirectory(rocksdb::FileSystem* file_system,
                                            const std::string& dir);

// Syncs these files and directories in any order, several at a time; on a disk
// this takes hardly longer than a single sync. Returns the first failure.
[[nodiscard]] rocksdb::Status SyncAll(rocksdb::FileSystem* file_system,
                                      const std::set<std::string>& files,
                                      const std::set<std::string>& dirs);

// Writes `path` durably and atomically: temporary file, sync, rename, sync of
// the directory. After a crash `path` has all of `contents`, or is unchanged.
[[nodiscard]] rocksdb::Status WriteDurably(rocksdb::FileSystem* file_system,
                                           const std::string& path,
                                           const rocksdb::Slice& contents);

// Sets a file's modification time, in nanoseconds since 1970. Not durable until
// a sync. (rocksdb::FileSystem cannot do this.)
[[nodiscard]] rocksdb::Status SetModifiedTime(const std::string& path,
                                              uint64_t modified_ns);

// Syncs every file below `dir` and the directories themselves.
[[nodiscard]] rocksdb::Status SyncTree(rocksdb::FileSystem* file_system,
                                       const std::string& dir);

// Checks that nothing is mounted below the directory `dir`, not even on a file:
// a bind mount or another file system belongs to somebody else, and a removal
// would empty it.
//   kRefused   something is mounted there; the message names the place
//   kInternal  this is unknown
[[nodiscard]] rocksdb::Status CheckNothingMounted(const std::string& dir);

// Removes a file, or a directory with everything in it. Does not follow links.
// Returns OK if `path` does not exist.
//   kRefused  something is mounted below the directory; nothing was removed
[[nodiscard]] rocksdb::Status RemoveTree(rocksdb::FileSystem* file_system,
                                         const std::string& path);

// Marks a point between two durable steps at which tests kill the process (see
// the crash table in pipeline/README.md). Does nothing unless a test has set a
// hook.
void FaultPoint(const char* name);
void TEST_SetFaultHook(std::function<void(const std::string& name)> hook);

}  // namespace sstferry
