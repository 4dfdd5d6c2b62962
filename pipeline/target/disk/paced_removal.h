// Deletion that leaves the disk to others.
#pragma once

#include <cstdint>
#include <string>

#include "pipeline/base/stop_signal.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// Removes a directory with all in it, its files at no more than so many bytes
// a second (0: no limit): a large file is cut shorter piece by piece first,
// unless it has another name or anybody has it open, who would miss them. OK
// when there is nothing. Follows no link.
//   kCancelled  `stop` came first; a part is still there
[[nodiscard]] rocksdb::Status RemoveTreePaced(
    rocksdb::FileSystem* file_system, const std::string& dir,
    uint64_t bytes_per_sec, StopSignal* stop);

}  // namespace sstferry
