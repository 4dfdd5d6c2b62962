// Cuts a pinned snapshot into ranges: half-open key intervals that tile what
// was asked for. Each carried file is a range of its own; what lies between is
// cut into ranges of about equal payload, far more of them than lanes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/message/messages.h"
#include "format/sst/sst_tail.h"
#include "pipeline/source/plan/file_plan.h"
#include "pipeline/source/plan/replaced_family.h"
#include "rocksdb/db.h"

namespace sstferry {

struct PlannerOptions {
  KeyInterval interval;
  uint32_t lanes = 4;
  uint64_t chunk_bytes = 64'000'000;
  bool all_files = false;  // list those outside the interval, too
  // Of a refresh: what carried files clear at the target.
  std::optional<ReplacedFamily> replaces;
  // Keys at which a range may better end than elsewhere, in order; or null.
  const std::vector<std::string>* bounds = nullptr;
  RangeNeed need = RangeNeed::kSend;  // of the ranges; others carry nothing
};

struct PlannerFamily {
  uint32_t index = 0;
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  // Its files cannot be cut inside: PlainTable without total order.
  bool one_range = false;
};

struct FamilyPlan {
  std::vector<FilePlan> files;   // sorted by smallest keys
  uint64_t estimated_entries = 0;
  uint64_t estimated_bytes = 0;  // SST and live blob bytes inside the interval
  uint32_t sorted_runs = 0;      // most iterators one range may merge
  double blob_factor = 0;        // live blob bytes for each SST byte
  TableSums tables;
};

// A range that is one file of the source, sent as it lies there.
struct CarriedFile {
  uint32_t range_id = 0;
  std::string path;
  uint64_t bytes = 0;  // on the wire, with its new tail, before it is stamped
  std::optional<SstStamp> stamp;  // of a refresh
};

// Lists the family's live files in the interval.
//   kRefused  the interval is empty in the family's order (begin >= end)
[[nodiscard]] rocksdb::Status PlanFiles(rocksdb::DB* db,
                                        const PlannerFamily& family,
                                        const PlannerOptions& options,
                                        FamilyPlan* plan);

// Whether the chunks of a refresh can replace this interval: a range deletion
// cannot hold the empty key where an application's order says what is smaller.
//   kRefused  the source holds the empty key there, or the target begins with it
[[nodiscard]] rocksdb::Status CheckReplaceable(
    rocksdb::DB* db, rocksdb::ColumnFamilyHandle* handle,
    const KeyInterval& interval, const ReplacedFamily& target);

// Makes ranges of the files, carried as plan->files say, and the rest weighed
// by the keys and offsets in their index blocks. The ranges of each family
// tile the interval in order; their ids continue from ranges->size().
[[nodiscard]] rocksdb::Status CutFamily(const PlannerFamily& family,
                                        const PlannerOptions& options,
                                        uint64_t target_bytes,
                                        FamilyPlan* plan,
                                        std::vector<Range>* ranges,
                                        std::vector<CarriedFile>* carried);

// Bytes of one family that are to be rebuilt, to know the total before any
// range is cut.
uint64_t RebuiltBytes(const FamilyPlan& plan);

// A range should weigh this much: at least kRangesPerLane ranges a lane, none
// heavier than a chunk.
uint64_t RangeTargetBytes(uint64_t total_bytes, const PlannerOptions& options);

inline constexpr uint32_t kRangesPerLane = 8;
inline constexpr uint64_t kMinRangeBytes = 256u << 10;
// Of what a refresh sends: where RocksDB keeps no level between 0 and the last
// (families up to 256 MB in its default options), each chunk is a file in level
// 0, and 20 of them slow down whoever writes.
inline constexpr uint64_t kMinReplacedBytes = 16u << 20;
// Leaves as many for the gaps between carried files, and twice that for
// ranges cut by weight.
inline constexpr uint64_t kMaxCarriedFiles = kMaxRanges / 5;

}  // namespace sstferry
