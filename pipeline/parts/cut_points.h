// Finds keys at which an SST file can be cut, and the number of bytes before
// each key.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rocksdb/status.h"

namespace sstferry {

// A key at which a file can be cut.
struct CutPoint {
  std::string key;     // user key; the cut is just before it
  uint64_t bytes = 0;  // file bytes since the previous cut point
};

// Finds at most max_count cut points, in file order. Reads the file's index if
// max_count is more than 1. If the file is not a block-based table, returns OK
// and finds no points.
[[nodiscard]] rocksdb::Status ReadCutPoints(const std::string& path,
                                            size_t max_count,
                                            std::vector<CutPoint>* points);

}  // namespace sstferry
