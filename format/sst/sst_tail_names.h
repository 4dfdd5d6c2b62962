// Names of a table file's blocks, for the code that reads its tail and its
// body.
#pragma once

#include <string>
#include <string_view>

#include "format/end_state.h"
#include "rocksdb/status.h"

namespace sstferry {

inline constexpr char kPropertiesName[] = "rocksdb.properties";
inline constexpr char kIndexName[] = "rocksdb.index";
inline constexpr std::string_view kPartitionedFilterPrefix =
    "partitionedfilter.";

// Returns the status for a file that cannot be carried for this reason.
[[nodiscard]] inline rocksdb::Status RefuseToCarry(const std::string& reason) {
  return MakeStatus(EndState::kRefused, reason);
}

}  // namespace sstferry
