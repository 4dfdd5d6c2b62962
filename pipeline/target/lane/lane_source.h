// What a lane knows of the source that it works with.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>

#include "format/digest.h"
#include "pipeline/target/clone/unit_map.h"
#include "pipeline/target/session/stall_guard.h"
#include "pipeline/wire/channel.h"
#include "rocksdb/status.h"

namespace sstferry {

// Number of the source whose plan the pull fills.
inline constexpr uint32_t kFirstSource = 0;

// Ownership: borrows all it points to. Constant but for the counters.
struct LaneSource {
  uint32_t index = kFirstSource;
  // Opens a lane: *channel stays valid until the next call for that lane.
  std::function<rocksdb::Status(uint32_t lane, Channel** channel)> open_lane;
  const StallGuard* guard = nullptr;
  // A lost lane is tried again for so long without progress; 0: never.
  std::chrono::milliseconds retry_for{0};
  // What its ranges are in the plan of the first source; null: the same.
  const UnitMap* units = nullptr;
  // Compares a unit that it sent, by the plan's range, with what the first
  // source has. An error is none of this source's. Null: nothing is compared.
  std::function<rocksdb::Status(uint32_t range_id, const Digest128& content,
                                bool* equal)>
      compare;
  // Chunks that were kept, and their bytes.
  std::atomic<uint64_t> chunks{0};
  std::atomic<uint64_t> bytes{0};
};

}  // namespace sstferry
