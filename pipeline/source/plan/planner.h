// Cuts a pinned snapshot into ranges: half-open key intervals that tile the
// requested interval, of about equal payload, far more of them than lanes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/message/messages.h"
#include "pipeline/source/plan/file_plan.h"
#include "pipeline/source/plan/replaced_family.h"
#include "rocksdb/db.h"

namespace sstferry {

struct PlannerOptions {
  KeyInterval interval;
  uint32_t lanes = 4;
  uint64_t chunk_bytes = 64'000'000;
  bool all_files = false;  // also list files outside the interval
  // Refresh only: what chunks replace at the target.
  std::optional<ReplacedFamily> replaces;
  // Preferred ends of ranges, in order; or null.
  const std::vector<std::string>* bounds = nullptr;
  RangeNeed need = RangeNeed::kSend;
};

struct PlannerFamily {
  uint32_t index = 0;
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  // The files cannot be cut inside: PlainTable without total order.
  bool one_range = false;
};

struct FamilyPlan {
  std::vector<FilePlan> files;   // sorted by smallest keys
  uint64_t estimated_entries = 0;
  uint64_t estimated_bytes = 0;  // SST and live blob bytes inside the interval
  uint32_t sorted_runs = 0;      // maximum of iterators in one range
  double blob_factor = 0;        // live blob bytes per SST byte
  TableSums tables;
};

// Lists the family's live files in the interval.
//   kRefused  the interval is empty in the family's order (begin >= end)
[[nodiscard]] rocksdb::Status PlanFiles(rocksdb::DB* db,
                                        const PlannerFamily& family,
                                        const PlannerOptions& options,
                                        FamilyPlan* plan);

// Checks that the chunks of a refresh can replace this interval: in an
// application's order a range deletion cannot contain the empty key, nor a last
// key behind which no key is known. `single_deletes`: the application may
// delete keys by SingleDelete.
//   kRefused  the source has the empty key, or it is the target's first key;
//             with SingleDelete, both sides have the same last key, so that the
//             target would hold a put above another
[[nodiscard]] rocksdb::Status CheckReplaceable(
    rocksdb::DB* db, rocksdb::ColumnFamilyHandle* handle,
    const KeyInterval& interval, const ReplacedFamily& target,
    bool single_deletes);

// Makes the ranges of one family, cut by the keys and offsets in index blocks.
// The ranges tile the interval in order; their ids continue from
// ranges->size().
[[nodiscard]] rocksdb::Status CutFamily(const PlannerFamily& family,
                                        const PlannerOptions& options,
                                        uint64_t target_bytes,
                                        FamilyPlan* plan,
                                        std::vector<Range>* ranges);

// Returns the bytes of one family's files and live blobs, for the total before
// any range is cut.
uint64_t RebuiltBytes(const FamilyPlan& plan);

// Returns the desired size of a range: at least kRangesPerLane ranges per lane,
// none larger than a chunk.
uint64_t RangeTargetBytes(uint64_t total_bytes, const PlannerOptions& options);

inline constexpr uint32_t kRangesPerLane = 8;
inline constexpr uint64_t kMinRangeBytes = 256u << 10;
// Minimum size of a range that a refresh sends. If RocksDB has no level between
// 0 and the last (families up to 256 MB with default options), each chunk
// becomes a file in level 0, and 20 such files slow down writers.
inline constexpr uint64_t kMinReplacedBytes = 16u << 20;
}  // namespace sstferry
