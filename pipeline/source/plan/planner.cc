#include "pipeline/source/plan/planner.h"

#include <algorithm>

#include "format/end_state.h"
#include "format/limits.h"
#include "format/message/key_for_message.h"
#include "pipeline/base/key_interval.h"
#include "pipeline/base/tile.h"
#include "pipeline/source/plan/cut_points.h"
#include "rocksdb/comparator.h"
#include "rocksdb/metadata.h"

namespace sstferry {
namespace {

using rocksdb::Comparator;
using rocksdb::Status;

// A key with the bytes between it and the previous cut point.
struct Weight {
  std::string key;
  uint64_t bytes = 0;
};

// An interval, and the weights of the files in it.
struct Region {
  KeyInterval interval;
  uint64_t bytes = 0;
  std::vector<Weight> weights;
};

// Cuts one family into ranges; exists for one call of CutFamily().
class FamilyCutter {
 public:
  FamilyCutter(const PlannerFamily& family, const PlannerOptions& options,
               uint64_t target_bytes, FamilyPlan* plan,
               std::vector<Range>* ranges)
      : family_(family),
        options_(options),
        comparator_(family.handle->GetComparator()),
        target_bytes_(target_bytes),
        plan_(plan),
        ranges_(ranges) {}

  [[nodiscard]] Status Cut();

 private:
  void CutEmptyKey(Region* region);
  [[nodiscard]] Status WeighFile(const FilePlan& file, Region* region);
  // Cuts at keys where the target's files end, then evenly between these.
  void CutRegion(Region* region);
  void CutEvenly(const Region& region);
  void AddRange(std::optional<std::string> begin,
                std::optional<std::string> end, uint64_t bytes);

  const PlannerFamily& family_;
  const PlannerOptions& options_;
  const Comparator* const comparator_;
  const uint64_t target_bytes_;
  FamilyPlan* const plan_;
  std::vector<Range>* const ranges_;
};

Status FamilyCutter::Cut() {
  Region region;
  region.interval = options_.interval;
  CutEmptyKey(&region);
  for (const FilePlan& file : plan_->files) {
    const Status status = WeighFile(file, &region);
    if (!status.ok()) {
      return status;
    }
  }
  CutRegion(&region);
  return Status::OK();
}

// In a refresh, gives the empty key a range, and so a chunk, of its own.
void FamilyCutter::CutEmptyKey(Region* region) {
  const std::string next(1, '\0');
  const auto& begin = region->interval.begin;
  const bool there =
      options_.replaces.has_value() &&
      comparator_ == rocksdb::BytewiseComparator() &&
      begin.value_or("").empty() &&
      EndsAfter(options_.interval, comparator_, next) &&
      (options_.replaces->first == "" ||
       (!plan_->files.empty() && plan_->files[0].smallest.empty()));
  if (there) {
    AddRange(begin, next, 0);
    region->interval.begin = next;
  }
}

// Adds the file's weights, fine enough for ranges of target_bytes_.
Status FamilyCutter::WeighFile(const FilePlan& file, Region* region) {
  // Four cut points a range keep the error of a cut below a quarter.
  const size_t wanted =
      family_.one_range
          ? 1
          : std::clamp<uint64_t>(
                file.bytes * 4 / std::max<uint64_t>(target_bytes_, 1), 1, 4096);
  std::vector<CutPoint> points;
  const Status status = ReadCutPoints(file.path, wanted, &points);
  if (!status.ok()) {
    return WithContext(status, EndState::kSourceError, file.path);
  }
  if (points.empty()) {
    points.push_back({file.largest, file.bytes});
  }
  const double factor = 1.0 + plan_->blob_factor;
  uint64_t inside = 0;
  for (const CutPoint& point : points) {
    const auto bytes = static_cast<uint64_t>(point.bytes * factor);
    if (Holds(options_.interval, comparator_, point.key)) {
      inside += bytes;
      if (point.key.size() + 2 <= kMaxKeyBytes && !family_.one_range) {
        region->weights.push_back(
            {ClosedEnd(comparator_, point.key), bytes});
      }  // else: too long for a cut; building refuses the key by name
    } else if (points.size() == 1) {
      inside += bytes / 2;  // the interval cuts a file without cut points
    }
  }
  region->bytes += inside;
  plan_->estimated_bytes += inside;
  if (file.bytes != 0) {
    plan_->estimated_entries += static_cast<uint64_t>(
        static_cast<double>(file.entries) *
        std::min(1.0, inside / factor / file.bytes));
  }
  return Status::OK();
}

void FamilyCutter::CutRegion(Region* region) {
  const auto before = [this](const std::string& a, const std::string& b) {
    return comparator_->Compare(a, b) < 0;
  };
  std::sort(region->weights.begin(), region->weights.end(),
            [&](const Weight& a, const Weight& b) {
              return before(a.key, b.key);
            });
  static const std::vector<std::string> kNone;
  const bool at_bounds = options_.bounds != nullptr && !family_.one_range;
  const std::vector<std::string>& bounds =
      at_bounds ? *options_.bounds : kNone;
  const std::optional<std::string>& end = region->interval.end;
  auto bound = region->interval.begin.has_value()
                   ? std::upper_bound(bounds.begin(), bounds.end(),
                                      *region->interval.begin, before)
                   : bounds.begin();
  Region piece;
  piece.interval.begin = region->interval.begin;
  uint64_t left = region->bytes;
  for (Weight& weight : region->weights) {
    for (; bound != bounds.end() && before(*bound, weight.key); ++bound) {
      // Skips bounds that would make a piece or its rest too small.
      if (piece.bytes < target_bytes_ / 2 ||
          left < piece.bytes + target_bytes_ / 2 ||
          (end.has_value() && !before(*bound, *end))) {
        continue;
      }
      piece.interval.end = *bound;
      CutEvenly(piece);
      left -= piece.bytes;
      piece = Region();
      piece.interval.begin = *bound;
    }
    piece.bytes += weight.bytes;
    piece.weights.push_back(std::move(weight));
  }
  piece.interval.end = end;
  piece.bytes = left;
  CutEvenly(piece);
}

// Cuts a region into equal shares. REQUIRES: weights in order.
void FamilyCutter::CutEvenly(const Region& region) {
  // Equal shares avoid a small rest.
  const uint64_t count = std::max<uint64_t>(
      1, (region.bytes + target_bytes_ - 1) / target_bytes_);
  const uint64_t share = std::max<uint64_t>(1, region.bytes / count);
  std::optional<std::string> begin = region.interval.begin;
  const std::optional<std::string>& end = region.interval.end;
  uint64_t bytes = 0;
  uint64_t cut_bytes = 0;
  for (const Weight& weight : region.weights) {
    bytes += weight.bytes;
    // A file's last cut point may be behind its last key.
    const bool between =
        (!begin.has_value() || comparator_->Compare(weight.key, *begin) > 0) &&
        (!end.has_value() || comparator_->Compare(weight.key, *end) < 0);
    if (bytes - cut_bytes >= share && between &&
        region.bytes - std::min(region.bytes, bytes) >= share / 2) {
      AddRange(begin, weight.key, bytes - cut_bytes);
      begin = weight.key;
      cut_bytes = bytes;
    }
  }
  AddRange(begin, end, region.bytes - std::min(region.bytes, cut_bytes));
}

void FamilyCutter::AddRange(std::optional<std::string> begin,
                            std::optional<std::string> end, uint64_t bytes) {
  Range range;
  range.id = static_cast<uint32_t>(ranges_->size());
  range.family = family_.index;
  range.interval.begin = std::move(begin);
  range.interval.end = std::move(end);
  range.estimated_bytes = bytes;
  range.need = options_.need;
  ranges_->push_back(std::move(range));
}

}  // namespace

uint64_t RebuiltBytes(const FamilyPlan& plan) {
  uint64_t bytes = 0;
  for (const FilePlan& file : plan.files) {
    bytes += file.bytes;
  }
  return static_cast<uint64_t>(bytes * (1.0 + plan.blob_factor));
}

uint64_t RangeTargetBytes(uint64_t total_bytes,
                          const PlannerOptions& options) {
  const uint64_t by_lanes =
      total_bytes / (std::max(1u, options.lanes) * kRangesPerLane);
  // Slightly less than a chunk, so that a low estimate does not cause a second,
  // tiny chunk.
  const uint64_t by_chunk = options.chunk_bytes / 16 * 15;
  const uint64_t by_count = total_bytes / (kMaxRanges / 2) + 1;
  return std::max({std::min(by_lanes, by_chunk),
                   std::min(kMinRangeBytes, by_chunk), by_count});
}

Status PlanFiles(rocksdb::DB* db, const PlannerFamily& family,
                 const PlannerOptions& options, FamilyPlan* plan) {
  const Comparator* comparator = family.handle->GetComparator();
  const KeyInterval& interval = options.interval;
  if (interval.begin.has_value() && interval.end.has_value() &&
      comparator->Compare(*interval.begin, *interval.end) >= 0) {
    return MakeStatus(EndState::kRefused,
                      "column family '" + family.handle->GetName() +
                          "': --begin is not before --end in its order (" +
                          comparator->Name() + ")");
  }
  rocksdb::ColumnFamilyMetaData metadata;
  db->GetColumnFamilyMetaData(family.handle, &metadata);
  uint64_t live_blob_bytes = 0;
  for (const rocksdb::BlobMetaData& blob : metadata.blob_files) {
    live_blob_bytes += blob.total_blob_bytes - blob.garbage_blob_bytes;
  }
  plan->blob_factor =
      metadata.size == 0 ? 0.0
                         : static_cast<double>(live_blob_bytes) / metadata.size;
  plan->files =
      ListFiles(db, family.handle,
                options.all_files ? KeyInterval() : interval,
                &plan->sorted_runs);
  return Status::OK();
}

namespace {

Status CannotReplace(rocksdb::ColumnFamilyHandle* handle,
                     const std::string& key, const std::string& why = "") {
  return MakeStatus(EndState::kRefused,
                    "column family '" + handle->GetName() +
                        "': a refresh in place cannot replace " + key +
                        " in the order " + handle->GetComparator()->Name() +
                        why + "; refresh by swap instead");
}

// The key `key` of both sides may not be a chunk of its own.
Status CheckLoneKey(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* handle,
                    const std::string& key) {
  rocksdb::ReadOptions all;
  all.total_order_seek = true;
  const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(all, handle));
  it->SeekToLast();
  if (!it->status().ok()) {
    return WithContext(it->status(), EndState::kSourceError,
                       "column family '" + handle->GetName() + "'");
  }
  return it->Valid() && it->key() == key
             ? CannotReplace(handle, "the last key " + KeyForMessage(key),
                             ", because the application may use SingleDelete")
             : Status::OK();
}

}  // namespace

Status CheckReplaceable(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* handle,
                        const KeyInterval& interval,
                        const ReplacedFamily& target, bool single_deletes) {
  const Comparator* order = handle->GetComparator();
  std::string behind;
  if (single_deletes && !interval.end && target.last &&
      !KeyBehind(order, *target.last, &behind)) {
    const Status status = CheckLoneKey(db, handle, *target.last);
    if (!status.ok()) {
      return status;
    }
  }
  if (order == rocksdb::BytewiseComparator() ||
      order == rocksdb::ReverseBytewiseComparator() ||
      !Holds(interval, order, "")) {
    return Status::OK();
  }
  rocksdb::PinnableSlice value;
  const Status found = db->Get(rocksdb::ReadOptions(), handle, "", &value);
  if (found.IsNotFound() && target.first != "") {
    return Status::OK();
  }
  if (!found.ok() && !found.IsNotFound()) {
    return WithContext(found, EndState::kSourceError,
                       "column family '" + handle->GetName() + "'");
  }
  return CannotReplace(handle, "the empty key");
}

Status CutFamily(const PlannerFamily& family, const PlannerOptions& options,
                 uint64_t target_bytes, FamilyPlan* plan,
                 std::vector<Range>* ranges) {
  return FamilyCutter(family, options, target_bytes, plan, ranges).Cut();
}

}  // namespace sstferry
