// Checks the log of an archive. After each set with a log, the segments must
// form a chain without gaps. On request, compares the bytes of the segments
// with their digests.
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
  uint64_t orphans = 0;  // number of segments that follow no committed set
  uint64_t read_segments = 0;
  uint64_t read_bytes = 0;
  uint64_t foreign = 0;
  // Latest time that can be restored from the log; 0: none.
  uint64_t newest_micros = 0;
  std::vector<LogWindow> windows;
  // One sentence for each segment with a problem.
  std::vector<std::string> problems;
};

// Checks the log. Reads the payload of each segment for whose key `reads`
// returns true. Stops if `cancelled` returns true. Reports problems of the log
// in *summary, and returns only errors of the store.
[[nodiscard]] rocksdb::Status CheckLog(
    const Archive& archive, const std::function<bool(const std::string&)>& reads,
    const std::function<bool()>& cancelled, LogCheckSummary* summary);

}  // namespace sstferry
