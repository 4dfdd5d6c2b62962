#include "pipeline/parts/planner.h"

#include <algorithm>

#include "format/end_state.h"
#include "format/limits.h"
#include "pipeline/base/key_interval.h"
#include "pipeline/parts/cut_points.h"
#include "rocksdb/comparator.h"
#include "rocksdb/metadata.h"

namespace sstferry {
namespace {

using rocksdb::Comparator;
using rocksdb::Status;

// Maximum size of the keys of all cut points of a family. This is enough for a
// million cut points with keys of 1 KiB, which are four cut points for each
// part that a plan can have.
constexpr uint64_t kMaxWeightKeyBytes = 1u << 30;

// A cut point: a key, and the number of bytes between the previous cut point
// and the key.
struct Weight {
  std::string key;
  uint64_t bytes = 0;
};

// An interval, and the cut points and bytes of all files in it.
struct Region {
  KeyInterval interval;
  uint64_t bytes = 0;
  std::vector<Weight> weights;
  uint64_t key_bytes = 0;  // of `weights`
};

// Cuts one family into parts. Each call of CutFamily() makes one object.
class FamilyCutter {
 public:
  FamilyCutter(const PlannerFamily& family, const PlannerOptions& options,
               uint64_t target_bytes, FamilyPlan* plan,
               std::vector<Part>* parts)
      : family_(family),
        options_(options),
        comparator_(family.handle->GetComparator()),
        target_bytes_(target_bytes),
        plan_(plan),
        parts_(parts) {}

  [[nodiscard]] Status Cut();

 private:
  [[nodiscard]] Status WeighFile(const FilePlan& file, Region* region);
  void CutRegion(Region* region);
  void AddPart(std::optional<std::string> begin,
                std::optional<std::string> end, uint64_t bytes);

  const PlannerFamily& family_;
  const PlannerOptions& options_;
  const Comparator* const comparator_;
  const uint64_t target_bytes_;
  FamilyPlan* const plan_;
  std::vector<Part>* const parts_;
};

Status FamilyCutter::Cut() {
  Region region;
  region.interval = options_.interval;
  for (const FilePlan& file : plan_->files) {
    RETURN_IF_ERROR(WeighFile(file, &region));
  }
  CutRegion(&region);
  return Status::OK();
}

// Adds the file's cut points to the region. Chooses enough points to cut parts
// of target_bytes_ bytes.
Status FamilyCutter::WeighFile(const FilePlan& file, Region* region) {
  // Four cut points per part keep the error of a part's size below a quarter.
  const size_t wanted =
      family_.one_part
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
      // ChunkBuilder refuses a longer key later.
      if (point.key.size() <= kMaxKeyBytes && !family_.one_part &&
          region->key_bytes + point.key.size() <= kMaxWeightKeyBytes) {
        region->key_bytes += point.key.size();
        region->weights.push_back({point.key, bytes});
      }
    } else if (points.size() == 1) {
      // A file without cut points is partly outside the interval. Assume that
      // half of the file is inside.
      inside += bytes / 2;
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

// Cuts a region into parts of equal size. So the last part is not much smaller
// than the others.
void FamilyCutter::CutRegion(Region* region) {
  std::sort(region->weights.begin(), region->weights.end(),
            [this](const Weight& a, const Weight& b) {
              return comparator_->Compare(a.key, b.key) < 0;
            });
  const uint64_t count = std::max<uint64_t>(
      1, (region->bytes + target_bytes_ - 1) / target_bytes_);
  const uint64_t share = std::max<uint64_t>(1, region->bytes / count);
  std::optional<std::string> begin = region->interval.begin;
  const std::optional<std::string>& end = region->interval.end;
  uint64_t bytes = 0;
  uint64_t cut_bytes = 0;
  for (const Weight& weight : region->weights) {
    bytes += weight.bytes;
    // Skip a cut point at the key of the previous cut, which would make an
    // empty part. Two files may have the same cut point.
    const bool between =
        (!begin.has_value() || comparator_->Compare(weight.key, *begin) > 0) &&
        (!end.has_value() || comparator_->Compare(weight.key, *end) < 0);
    if (bytes - cut_bytes >= share && between &&
        region->bytes - std::min(region->bytes, bytes) >= share / 2) {
      AddPart(begin, weight.key, bytes - cut_bytes);
      begin = weight.key;
      cut_bytes = bytes;
    }
  }
  AddPart(begin, end, region->bytes - std::min(region->bytes, cut_bytes));
}

void FamilyCutter::AddPart(std::optional<std::string> begin,
                            std::optional<std::string> end, uint64_t bytes) {
  Part part;
  part.id = static_cast<uint32_t>(parts_->size());
  part.family = family_.index;
  part.interval.begin = std::move(begin);
  part.interval.end = std::move(end);
  part.bytes = bytes;
  part.need = options_.need;
  part.kind = options_.need == PartNeed::kCompare ? PartKind::kDelta
                                                  : PartKind::kRebuilt;
  parts_->push_back(std::move(part));
}

}  // namespace

uint64_t RebuiltBytes(const FamilyPlan& plan) {
  uint64_t bytes = 0;
  for (const FilePlan& file : plan.files) {
    bytes += file.bytes;
  }
  return static_cast<uint64_t>(bytes * (1.0 + plan.blob_factor));
}

uint64_t PartTargetBytes(uint64_t total_bytes,
                          const PlannerOptions& options) {
  const uint64_t by_lanes =
      total_bytes / (std::max(1u, options.lanes) * kPartsPerLane);
  const uint64_t by_chunk = MostPartBytes(options.chunk_bytes);
  const uint64_t by_count = total_bytes / (kMaxParts / 2) + 1;
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
                          "': expected --begin before --end in the order of " +
                          comparator->Name());
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
      ListFiles(db, family.handle, interval, &plan->sorted_runs);
  return Status::OK();
}

Status CutFamily(const PlannerFamily& family, const PlannerOptions& options,
                 uint64_t target_bytes, FamilyPlan* plan,
                 std::vector<Part>* parts) {
  return FamilyCutter(family, options, target_bytes, plan, parts).Cut();
}

}  // namespace sstferry
