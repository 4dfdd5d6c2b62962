// Deletes directories at a limited rate, so that other users of the disk are
// not delayed.
#pragma once

#include <cstdint>
#include <string>

#include "pipeline/base/stop_signal.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// Removes a directory with everything in it, at most `bytes_per_sec` (0: no
// limit). With a limit, truncates a large file step by step before deleting it.
// Does not truncate a file that has another hard link or that a process has
// open. Returns OK if `dir` does not exist. Does not follow links.
//   kRefused    something is mounted below `dir`; nothing was removed
//   kCancelled  `stop` was raised first; some files still exist
[[nodiscard]] rocksdb::Status RemoveTreePaced(
    rocksdb::FileSystem* file_system, const std::string& dir,
    uint64_t bytes_per_sec, StopSignal* stop);

// Removes everything in a directory except the file `kept`. In all other
// respects like RemoveTreePaced().
[[nodiscard]] rocksdb::Status EmptyDirectoryPaced(
    rocksdb::FileSystem* file_system, const std::string& dir,
    const std::string& kept, uint64_t bytes_per_sec, StopSignal* stop);

}  // namespace sstferry
