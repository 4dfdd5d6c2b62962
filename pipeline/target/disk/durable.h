// The few durable steps of a target, each written once. Everything a target
// writes, renames and removes goes through a rocksdb::FileSystem.
#pragma once

#include <functional>
#include <string>

#include "rocksdb/file_system.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Two renames that rocksdb::FileSystem has no call for. A file system that has
// to see all that happens to its names derives from this and overrides them;
// for every other they are made by the kernel.
class RenamingFileSystem : public rocksdb::FileSystemWrapper {
 public:
  using FileSystemWrapper::FileSystemWrapper;
  static const char* kClassName() { return "sstferry.Renaming"; }
  bool IsInstanceOf(const std::string& name) const override {
    return name == kClassName() || FileSystemWrapper::IsInstanceOf(name);
  }
  // Each name gets what the other had. Both exist.
  virtual rocksdb::IOStatus ExchangeNames(const std::string& a,
                                          const std::string& b);
  // Fails when `to` exists, whatever it is.
  virtual rocksdb::IOStatus RenameToNew(const std::string& from,
                                        const std::string& to);
};

[[nodiscard]] rocksdb::Status ExchangeNames(rocksdb::FileSystem* file_system,
                                            const std::string& a,
                                            const std::string& b);
[[nodiscard]] rocksdb::Status RenameToNew(rocksdb::FileSystem* file_system,
                                          const std::string& from,
                                          const std::string& to);

// Makes a file durable that nobody has open for writing.
[[nodiscard]] rocksdb::Status SyncFile(rocksdb::FileSystem* file_system,
                                       const std::string& path);

// Makes the names in a directory durable.
[[nodiscard]] rocksdb::Status SyncDirectory(rocksdb::FileSystem* file_system,
                                            const std::string& dir);

// Writes `path` so that after a crash it holds all of `contents` or does not
// exist (or holds what it held before): temporary, sync, rename, sync of the
// directory.
[[nodiscard]] rocksdb::Status WriteDurably(rocksdb::FileSystem* file_system,
                                           const std::string& path,
                                           const rocksdb::Slice& contents);

// Syncs every file below `dir` and the directories themselves.
[[nodiscard]] rocksdb::Status SyncTree(rocksdb::FileSystem* file_system,
                                       const std::string& dir);

// Removes a file, or a directory with all in it; follows no link. OK when
// there is nothing.
[[nodiscard]] rocksdb::Status RemoveTree(rocksdb::FileSystem* file_system,
                                         const std::string& path);

// A named place between two durable steps, where tests stop the process.
// Does nothing unless a test has set a hook.
void FaultPoint(const char* name);
void TEST_SetFaultHook(std::function<void(const std::string& name)> hook);

}  // namespace sstferry
