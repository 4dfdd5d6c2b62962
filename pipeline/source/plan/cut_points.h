// Keys at which an SST file can be cut, with the bytes before them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rocksdb/status.h"

namespace sstferry {

struct CutPoint {
  std::string key;     // a user key; entries equal to it come after the cut
  uint64_t bytes = 0;  // file bytes since the anchor before it
};

// Reads a file's index when `max_count` is more than 1; points come in file
// order, at most max_count. None, and OK, for a table that is not block-based.
[[nodiscard]] rocksdb::Status ReadCutPoints(const std::string& path,
                                            size_t max_count,
                                            std::vector<CutPoint>* points);

}  // namespace sstferry
