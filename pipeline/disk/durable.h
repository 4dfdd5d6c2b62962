// Steps of a target that survive a crash: sync, write, rename and remove. All
// use a rocksdb::FileSystem. Error messages contain the path.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "rocksdb/file_system.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Adds two kinds of rename, and symbolic links, to rocksdb::FileSystem. A file
// system that must observe all changes of names derives from this class and
// overrides them. For other file systems, the functions below call the kernel.
// Return NotSupported if the underlying file system cannot do this.
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

// Writes `path` durably and atomically: writes a temporary file, syncs it,
// renames it, and syncs the directory. After a crash, `path` either contains
// all of `contents`, or is unchanged.
[[nodiscard]] rocksdb::Status WriteDurably(rocksdb::FileSystem* file_system,
                                           const std::string& path,
                                           const rocksdb::Slice& contents);

// Sets a file's modification time, in nanoseconds since 1970. The time becomes
// durable with the next sync. (rocksdb::FileSystem cannot set it.)
[[nodiscard]] rocksdb::Status SetModifiedTime(const std::string& path,
                                              uint64_t modified_ns);

// Syncs every file below `dir` and the directories themselves.
[[nodiscard]] rocksdb::Status SyncTree(rocksdb::FileSystem* file_system,
                                       const std::string& dir);

// Checks that nothing is mounted below the directory `dir`, neither on a
// directory nor on a file. A removal of `dir` would delete the files of a
// mounted file system, which belong to somebody else.
//   kRefused   something is mounted there; the message names the mount point
//   kInternal  the mount points cannot be read
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
