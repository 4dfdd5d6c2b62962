// Cuts a pinned snapshot into parts. Parts are half-open key intervals that
// cover the requested interval without gaps or overlaps. They have about equal
// numbers of bytes, and there are usually several for each lane.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/messages.h"
#include "pipeline/parts/file_plan.h"
#include "rocksdb/db.h"

namespace sstferry {

struct PlannerOptions {
  KeyInterval interval;
  uint32_t lanes = 4;
  uint64_t chunk_bytes = 64'000'000;
  PartNeed need = PartNeed::kSend;
};

// The column family to plan.
struct PlannerFamily {
  uint32_t index = 0;
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  // True if the family must be a single part, because its PlainTable files
  // cannot be cut.
  bool one_part = false;
};

// The files of one family that overlap the interval, and totals over them.
struct FamilyPlan {
  std::vector<FilePlan> files;   // sorted by smallest keys
  uint64_t estimated_entries = 0;
  uint64_t estimated_bytes = 0;  // SST and live blob bytes inside the interval
  uint32_t sorted_runs = 0;      // maximum number of iterators in one part
  double blob_factor = 0;        // live blob bytes per SST byte
  TableSums tables;
};

// Lists the family's live files in the interval.
//   kRefused  the interval is empty in the family's order (begin >= end)
[[nodiscard]] rocksdb::Status PlanFiles(rocksdb::DB* db,
                                        const PlannerFamily& family,
                                        const PlannerOptions& options,
                                        FamilyPlan* plan);

// Cuts one family into parts and appends them to *parts. Cuts at keys from
// index blocks. The new parts cover the interval in key order, and their ids
// continue the ids in *parts.
[[nodiscard]] rocksdb::Status CutFamily(const PlannerFamily& family,
                                        const PlannerOptions& options,
                                        uint64_t target_bytes,
                                        FamilyPlan* plan,
                                        std::vector<Part>* parts);

// Returns the bytes of one family's files and live blobs. Planning adds up
// these bytes for all families before it cuts the first part.
uint64_t RebuiltBytes(const FamilyPlan& plan);

// Returns the size that parts should have. Each lane then gets kPartsPerLane
// parts, and each part fits into a chunk. Parts are larger if there would be
// too many.
uint64_t PartTargetBytes(uint64_t total_bytes, const PlannerOptions& options);

// Returns the maximum size of a part, which is slightly less than a chunk. The
// size of a part is an estimate; if it is a little too low, the part still
// needs no second, tiny chunk.
inline uint64_t MostPartBytes(uint64_t chunk_bytes) {
  return chunk_bytes / 16 * 15;
}

inline constexpr uint32_t kPartsPerLane = 8;
inline constexpr uint64_t kMinRangeBytes = 256u << 10;
}  // namespace sstferry
