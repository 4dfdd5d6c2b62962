// Proves the log of an archive: that its segments are one chain behind the sets
// that they continue, and, where it is asked for, that their bytes are those that
// were put.
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
  uint64_t orphans = 0;  // segments behind no set that counts
  uint64_t read_segments = 0;
  uint64_t read_bytes = 0;
  uint64_t foreign = 0;
  uint64_t newest_micros = 0;  // until then it can be restored; 0: never
  std::vector<LogWindow> windows;
  // Says what is wrong: a sentence for each segment.
  std::vector<std::string> problems;
};

// `reads`: whether the payload of the segment with this key is read, too.
// `cancelled` is polled. OK also where something is wrong: errors of the store.
[[nodiscard]] rocksdb::Status CheckLog(
    const Archive& archive, const std::function<bool(const std::string&)>& reads,
    const std::function<bool()>& cancelled, LogCheckSummary* summary);

}  // namespace sstferry
