// The few durable steps of a target, each written once.
#pragma once

#include <functional>
#include <string>

#include "rocksdb/file_system.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Makes the names in a directory durable.
[[nodiscard]] rocksdb::Status SyncDirectory(const std::string& dir);

// Writes `path` so that after a crash it holds all of `contents` or does not
// exist (or holds what it held before): temporary, sync, rename, sync of the
// directory.
[[nodiscard]] rocksdb::Status WriteDurably(rocksdb::FileSystem* file_system,
                                           const std::string& path,
                                           const rocksdb::Slice& contents);

// Syncs every file below `dir` and the directories themselves.
[[nodiscard]] rocksdb::Status SyncTree(const std::string& dir);

// A named place between two durable steps, where tests stop the process.
// Does nothing unless a test has set a hook.
void FaultPoint(const char* name);
void TEST_SetFaultHook(std::function<void(const std::string& name)> hook);

}  // namespace sstferry
