// Cuts a pinned snapshot into ranges: half-open key intervals that tile what
// was asked for, of about equal payload, far more of them than lanes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/messages.h"
#include "rocksdb/db.h"

namespace sstferry {

struct PlannerOptions {
  KeyInterval interval;
  uint32_t lanes = 4;
  uint64_t chunk_bytes = 64'000'000;
};

struct PlannerFamily {
  uint32_t index = 0;
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  // Its files cannot be cut inside: PlainTable without total order.
  bool one_range = false;
};

struct FamilyPlan {
  uint64_t estimated_entries = 0;
  uint64_t estimated_bytes = 0;  // SST and live blob bytes inside the interval
  uint32_t files = 0;
  uint32_t sorted_runs = 0;      // most iterators one range may merge
  uint64_t merge_operands = 0;
  uint32_t max_format_version = 0;  // found in its files; 0: none found
};

// Weighs all levels' files, L0 included (the snapshot holds nothing in
// memtables), by the keys and offsets in their index blocks.
//   kRefused  the interval is empty in a family's order (begin >= end)
// The ranges of each family tile the interval in order; their ids continue
// from ranges->size().
[[nodiscard]] rocksdb::Status PlanFamily(rocksdb::DB* db,
                                         const PlannerFamily& family,
                                         const PlannerOptions& options,
                                         uint64_t total_bytes,
                                         FamilyPlan* plan,
                                         std::vector<Range>* ranges);

// Bytes of one family, to know the total before any range is cut.
uint64_t FamilyBytes(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* handle);

// A range should weigh this much: at least kRangesPerLane ranges a lane, none
// heavier than a chunk.
uint64_t RangeTargetBytes(uint64_t total_bytes, const PlannerOptions& options);

inline constexpr uint32_t kRangesPerLane = 8;
inline constexpr uint64_t kMinRangeBytes = 256u << 10;

}  // namespace sstferry
