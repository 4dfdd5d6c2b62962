#include "pipeline/refresh/refresh_source.h"

#include <algorithm>
#include <string>

#include "format/end_state.h"
#include "format/limits.h"
#include "pipeline/refresh/compare_tuning.h"
#include "pipeline/refresh/delta_filter.h"
#include "pipeline/refresh/lane_deltas.h"
#include "pipeline/refresh/single_deletes.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// A compared part has at least the chunk size divided by this number.
constexpr uint64_t kComparedPerChunk = 16;

// Desired number of entries in a compared part. It is only a quarter of what an
// index can keep, because the numbers of entries are estimates.
constexpr uint64_t kEntriesPerCompared = kMaxIndexEntries / 4;
// Assumed size of an entry if the number of entries is unknown.
constexpr uint64_t kAssumedEntryBytes = 64;

uint64_t BytesOf(const TransferFamily& family) {
  uint64_t bytes = 0;
  for (const FilePlan& file : family.plan.files) {
    bytes += file.bytes;
  }
  return bytes;
}

// Returns the size that compared parts should have. Large parts are better,
// because each part may become a file, but the keys of a part must fit in
// memory. The size is larger if the plan would otherwise have too many parts.
uint64_t ComparedBytes(const PlanOrder& order, const TransferPlan& plan,
                       const TransferFamily& family) {
  const uint64_t small = std::max(
      order.request.chunk_bytes / kComparedPerChunk, kMinRangeBytes);
  const uint64_t bytes = BytesOf(family);
  uint64_t entries = 0;
  for (const FilePlan& file : family.plan.files) {
    entries += file.entries;
  }
  uint64_t all_bytes = 0;
  for (const TransferFamily& one : plan.sources) {
    all_bytes += BytesOf(one);
  }
  const uint64_t by_entries =
      (entries == 0 ? kAssumedEntryBytes : bytes / entries) *
      kEntriesPerCompared;
  const uint64_t most = MostPartBytes(order.request.chunk_bytes);
  return std::max(
      all_bytes / (kMaxParts / 2) + 1,
      std::clamp(std::min(by_entries, bytes / (order.lanes * kPartsPerLane)),
                 std::min(small, most), most));
}

}  // namespace

Status RefreshSource::Decide(const PlanOrder& order,
                             const TransferFamily& family) {
  families_.resize(plan_->sources.size());
  Decided& decided = families_[family.index];
  decided.delta_options = family.chunk_options;
  UseDeltaFilters(snapshot_.families()[family.index].options,
                  &decided.delta_options);
  const std::vector<std::string>& theirs = order.request.replica_families;
  const bool has_entries =
      std::find(theirs.begin(), theirs.end(),
                told(family).description.name) != theirs.end();
  decided.need = has_entries ? PartNeed::kCompare : PartNeed::kSend;
  return CheckSingleDeletes(order, family);
}

// Refuses SingleDeletes. A delta puts an entry above an older put of the same
// key. A later SingleDelete would remove only the newer put, and the older one
// would become visible again. Does not find a SingleDelete that a compaction
// has already removed together with its put (docs/refresh.md, "What it
// refuses").
Status RefreshSource::CheckSingleDeletes(const PlanOrder& order,
                                         const TransferFamily& family) const {
  std::string where;
  if (snapshot_.wal_holds_single_deletes()) {
    where = "its WALs hold a SingleDelete";
  }
  for (const FilePlan& file : family.plan.files) {
    if (!where.empty()) {
      break;
    }
    bool found = false;
    if (!file.is_block_based) {
      where = "its file " + file.name +
              " is not a block-based table, so it cannot be searched for one";
    } else if (file.deletions != 0) {
      RETURN_IF_ERROR(FindSingleDelete(rocksdb::FileSystem::Default().get(),
                                       file.path, order.ended, &found));
    }
    if (found) {
      where = "its file " + file.name + " holds a SingleDelete";
    }
  }
  return where.empty()
             ? Status::OK()
             : MakeStatus(EndState::kRefused,
                          "column family '" + told(family).description.name +
                              "': the application may use SingleDelete (" +
                              where +
                              "), which would bring back an older value of a "
                              "key after a refresh in place; only a swap can "
                              "refresh the replica");
}

uint64_t RefreshSource::BytesToSend(const TransferFamily& family) const {
  return families_[family.index].need == PartNeed::kSend
             ? RebuiltBytes(family.plan)
             : 0;
}

Status RefreshSource::Cut(const PlanOrder& order, uint64_t target_bytes,
                          TransferFamily* family) {
  const PartNeed need = families_[family->index].need;
  PlannerOptions options = PlannerOptionsOf(order);
  options.need = need;
  if (need == PartNeed::kCompare) {
    target_bytes = ComparedBytes(order, *plan_, *family);
  }
  const size_t first_part = plan_->parts.size();
  RETURN_IF_ERROR(CutFamily(PlannerFamilyOf(*family, told(*family)), options,
                            target_bytes, &family->plan, &plan_->parts));
  if (order.request.purpose == Purpose::kPlan) {
    AddItems(need, first_part);
  }
  return Status::OK();
}

void RefreshSource::AddItems(PartNeed need, size_t first_part) {
  const bool is_compared = need == PartNeed::kCompare;
  for (size_t i = first_part;
       i < plan_->parts.size() && plan_->items.size() < kMaxParts; ++i) {
    PlanItem item;
    item.family = plan_->parts[i].family;
    item.interval = plan_->parts[i].interval;
    item.bytes = plan_->parts[i].bytes;
    item.action = is_compared ? PlanAction::kDelta : PlanAction::kRebuild;
    item.reason = is_compared ? "if digests differ"
                              : "the replica has nothing of the column family";
    plan_->items.push_back(std::move(item));
  }
}

std::unique_ptr<LaneDeltas> RefreshSource::MakeDeltas(
    const TransferId& salt) const {
  return std::make_unique<GroupDeltas>(this, salt);
}

}  // namespace sstferry
