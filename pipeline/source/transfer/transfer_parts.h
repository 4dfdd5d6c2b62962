// What a transfer knows of each column family, and what its lanes count.
#pragma once

#include <atomic>
#include <cstdint>

#include "format/message/messages.h"
#include "pipeline/base/stage_clock.h"
#include "pipeline/source/plan/cover_plan.h"
#include "pipeline/source/plan/planner.h"
#include "rocksdb/options.h"

namespace sstferry {

struct TransferFamily {
  Family wire;  // as the target learns it
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  rocksdb::Options chunk_options;
  uint64_t readahead_bytes = 0;
  FamilyPlan plan;
  std::vector<PlanSegment> segments;       // until it is cut
  std::optional<ReplacedFamily> replaces;  // of a refresh
  std::vector<std::string> bounds;  // of the target's files, in order
};

// What lanes count; any thread.
struct TransferCounters {
  std::atomic<uint64_t> entries{0};
  std::atomic<uint64_t> key_value_bytes{0};
  std::atomic<uint64_t> sst_bytes{0};
  std::atomic<uint64_t> wire_bytes{0};
  std::atomic<uint64_t> send_blocked_micros{0};
  StageTotals stages;
};

}  // namespace sstferry
