// Deletes directories slowly, so as not to delay other users of the disk.
#pragma once

#include <cstdint>
#include <string>

#include "pipeline/base/stop_signal.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// Removes a directory with everything in it, at most `bytes_per_sec` (0: no
// limit). With a limit, truncates a large file step by step before deleting it,
// unless the file has another name or a process has it open. Returns OK if
// `dir` does not exist. Does not follow links.
//   kRefused    something is mounted below `dir`; nothing was removed
//   kCancelled  `stop` was raised first; some files still exist
[[nodiscard]] rocksdb::Status RemoveTreePaced(
    rocksdb::FileSystem* file_system, const std::string& dir,
    uint64_t bytes_per_sec, StopSignal* stop);

// Removes everything in a directory except the name `kept`, like
// RemoveTreePaced().
[[nodiscard]] rocksdb::Status EmptyDirectoryPaced(
    rocksdb::FileSystem* file_system, const std::string& dir,
    const std::string& kept, uint64_t bytes_per_sec, StopSignal* stop);

}  // namespace sstferry
