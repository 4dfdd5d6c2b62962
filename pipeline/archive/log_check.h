// Checks the log of an archive: its segments must form an unbroken chain after
// the sets that they continue. On request, also compares their bytes with those
// that were put.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pipeline/archive/archive.h"
#include "pipeline/archive/log_index.h"
#include "rocksdb/status.h"

namespace sstferry {

struct LogCheckSummary {
  uint64_t segments = 0;
  uint64_t bytes = 0;
  uint64_t orphans = 0;  // segments after no committed set
  uint64_t read_segments = 0;
  uint64_t read_bytes = 0;
  uint64_t foreign = 0;
  uint64_t newest_micros = 0;  // end of the restorable time; 0: none
  std::vector<LogWindow> windows;
  // The problems found: a sentence for each segment.
  std::vector<std::string> problems;
};

// Checks the log. `reads` returns true for the key of a segment whose payload
// must be read. `cancelled` is polled. Problems of the log are in *summary; the
// status reports only errors of the store.
[[nodiscard]] rocksdb::Status CheckLog(
    const Archive& archive, const std::function<bool(const std::string&)>& reads,
    const std::function<bool()>& cancelled, LogCheckSummary* summary);

}  // namespace sstferry
