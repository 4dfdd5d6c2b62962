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

struct SstFileFacts {
  uint32_t format_version = 0;  // 0: not a block-based table
  uint64_t merge_operands = 0;
  std::vector<CutPoint> cut_points;  // in file order, at most max_cut_points
};

// Reads footer, properties and, when max_cut_points > 1, the index of a file.
// A table that is not block-based gives facts without cut_points and OK.
[[nodiscard]] rocksdb::Status ReadSstFacts(const std::string& path,
                                           size_t max_cut_points,
                                           SstFileFacts* facts);

}  // namespace sstferry
