// Finds keys at which an SST file can be cut, with the bytes before them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rocksdb/status.h"

namespace sstferry {

struct CutPoint {
  std::string key;     // a user key; entries equal to it come after the cut
  uint64_t bytes = 0;  // file bytes since the previous cut point
};

// Reads the file's index if `max_count` is more than 1. Returns at most
// max_count points in file order. None, and OK, for a table that is not
// block-based.
[[nodiscard]] rocksdb::Status ReadCutPoints(const std::string& path,
                                            size_t max_count,
                                            std::vector<CutPoint>* points);

}  // namespace sstferry
