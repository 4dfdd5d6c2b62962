// What a transfer moves, and how. Constant once it is made.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "format/digest.h"
#include "format/message/messages.h"
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

struct TransferPlan {
  std::vector<NamedValue> database_options;
  std::vector<TransferFamily> families;
  std::vector<Range> ranges;  // by id
  std::unordered_map<uint32_t, CarriedFile> carried;  // by range id
  std::vector<PlanItem> items;     // only for a plan that is shown
  std::vector<Cover> covers;       // what the target is to remember
  std::vector<std::string> notes;  // of the snapshot, then of the plan

  // The file that a range is; null for one that is rebuilt.
  const CarriedFile* CarriedAt(uint32_t range_id) const {
    const auto found = carried.find(range_id);
    return found == carried.end() ? nullptr : &found->second;
  }
  // Two plans of one snapshot with the same digest are the same.
  Digest128 Digest() const;
};

}  // namespace sstferry
