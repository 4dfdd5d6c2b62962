// Names of a table file's blocks that its tail and its body go by.
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

// The file cannot be carried, for this reason.
[[nodiscard]] inline rocksdb::Status RefuseToCarry(const std::string& reason) {
  return MakeStatus(EndState::kRefused, reason);
}

}  // namespace sstferry
