#include "pipeline/source/planner.h"

#include <algorithm>

#include "format/end_state.h"
#include "format/limits.h"
#include "pipeline/source/sst_facts.h"
#include "rocksdb/comparator.h"
#include "rocksdb/metadata.h"

namespace sstferry {
namespace {

using rocksdb::Comparator;
using rocksdb::Slice;
using rocksdb::Status;

// A key with the bytes that lie between it and the anchor before it.
struct Weight {
  std::string key;
  uint64_t bytes = 0;
};

bool InInterval(const Comparator* comparator, const KeyInterval& interval,
                const Slice& key) {
  return (!interval.begin.has_value() ||
          comparator->Compare(key, *interval.begin) >= 0) &&
         (!interval.end.has_value() ||
          comparator->Compare(key, *interval.end) < 0);
}

// True when [smallest, largest] touches the interval.
bool Touches(const Comparator* comparator, const KeyInterval& interval,
             const rocksdb::SstFileMetaData& file) {
  return (!interval.begin.has_value() ||
          comparator->Compare(file.largestkey, *interval.begin) >= 0) &&
         (!interval.end.has_value() ||
          comparator->Compare(file.smallestkey, *interval.end) < 0);
}

// Appends the file's weights, cut finely enough for ranges of `target_bytes`.
Status WeighFile(const Comparator* comparator, const KeyInterval& interval,
                 const rocksdb::SstFileMetaData& file, uint64_t target_bytes,
                 double blob_factor, FamilyPlan* plan,
                 std::vector<Weight>* weights) {
  // Four cut_points a range keep the error of a cut below a quarter.
  const size_t wanted = std::clamp<uint64_t>(
      file.size * 4 / std::max<uint64_t>(target_bytes, 1), 1, 4096);
  SstFileFacts facts;
  const std::string path = file.directory + "/" + file.relative_filename;
  const Status status = ReadSstFacts(path, wanted, &facts);
  if (!status.ok()) {
    return WithContext(status, EndState::kSourceError, path);
  }
  plan->max_format_version =
      std::max(plan->max_format_version, facts.format_version);
  plan->merge_operands += facts.merge_operands;
  if (facts.cut_points.empty()) {
    facts.cut_points.push_back({file.largestkey, file.size});
  }
  uint64_t inside = 0;
  for (const CutPoint& anchor : facts.cut_points) {
    const uint64_t bytes =
        anchor.bytes + static_cast<uint64_t>(anchor.bytes * blob_factor);
    if (InInterval(comparator, interval, anchor.key)) {
      inside += bytes;
      if (anchor.key.size() <= kMaxKeyBytes) {
        weights->push_back({anchor.key, bytes});
      }  // else: no place for a cut; building refuses the key by name
    } else if (facts.cut_points.size() == 1) {
      inside += bytes / 2;  // the interval cuts a file that has no cut_points
    }
  }
  plan->estimated_bytes += inside;
  plan->estimated_entries += file.size == 0
                                 ? 0
                                 : static_cast<uint64_t>(
                                       static_cast<double>(file.num_entries) *
                                       std::min(1.0, inside / (1.0 + blob_factor) /
                                                         file.size));
  return Status::OK();
}

void AddRange(const PlannerFamily& family, std::optional<std::string> begin,
              std::optional<std::string> end, uint64_t bytes,
              std::vector<Range>* ranges) {
  Range range;
  range.id = static_cast<uint32_t>(ranges->size());
  range.family = family.index;
  range.interval.begin = std::move(begin);
  range.interval.end = std::move(end);
  range.estimated_bytes = bytes;
  ranges->push_back(std::move(range));
}

void CutRanges(const PlannerFamily& family, const PlannerOptions& options,
               const Comparator* comparator, uint64_t target_bytes,
               uint64_t family_bytes, std::vector<Weight>* weights,
               std::vector<Range>* ranges) {
  std::sort(weights->begin(), weights->end(),
            [comparator](const Weight& a, const Weight& b) {
              return comparator->Compare(a.key, b.key) < 0;
            });
  // Ranges of one family get equal shares rather than full ones and a rest.
  const uint64_t count =
      std::max<uint64_t>(1, (family_bytes + target_bytes - 1) / target_bytes);
  const uint64_t share = std::max<uint64_t>(1, family_bytes / count);
  std::optional<std::string> begin = options.interval.begin;
  uint64_t bytes = 0;
  uint64_t cut_bytes = 0;
  for (const Weight& weight : *weights) {
    bytes += weight.bytes;
    const bool moves = !begin.has_value() ||
                       comparator->Compare(weight.key, *begin) > 0;
    if (bytes - cut_bytes >= share && moves &&
        family_bytes - std::min(family_bytes, bytes) >= share / 2) {
      AddRange(family, begin, weight.key, bytes - cut_bytes, ranges);
      begin = weight.key;
      cut_bytes = bytes;
    }
  }
  AddRange(family, begin, options.interval.end,
           family_bytes - std::min(family_bytes, cut_bytes), ranges);
}

}  // namespace

uint64_t FamilyBytes(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* handle) {
  rocksdb::ColumnFamilyMetaData metadata;
  db->GetColumnFamilyMetaData(handle, &metadata);
  return metadata.size + metadata.blob_file_size;
}

uint64_t RangeTargetBytes(uint64_t total_bytes,
                          const PlannerOptions& options) {
  const uint64_t by_lanes =
      total_bytes / (std::max(1u, options.lanes) * kRangesPerLane);
  // Just below a chunk, so that an estimate a little short does not make a
  // second, tiny chunk.
  const uint64_t by_chunk = options.chunk_bytes / 16 * 15;
  const uint64_t by_count = total_bytes / (kMaxRanges / 2) + 1;
  return std::max({std::min(by_lanes, by_chunk),
                   std::min(kMinRangeBytes, by_chunk), by_count});
}

Status PlanFamily(rocksdb::DB* db, const PlannerFamily& family,
                  const PlannerOptions& options, uint64_t total_bytes,
                  FamilyPlan* plan, std::vector<Range>* ranges) {
  const Comparator* comparator = family.handle->GetComparator();
  const KeyInterval& interval = options.interval;
  if (interval.begin.has_value() && interval.end.has_value() &&
      comparator->Compare(*interval.begin, *interval.end) >= 0) {
    return MakeStatus(EndState::kRefused,
                      "column family '" + family.handle->GetName() +
                          "': --begin is not before --end in its order (" +
                          comparator->Name() + ")");
  }
  const uint64_t target_bytes = RangeTargetBytes(total_bytes, options);
  rocksdb::ColumnFamilyMetaData metadata;
  db->GetColumnFamilyMetaData(family.handle, &metadata);
  uint64_t live_blob_bytes = 0;
  for (const rocksdb::BlobMetaData& blob : metadata.blob_files) {
    live_blob_bytes += blob.total_blob_bytes - blob.garbage_blob_bytes;
  }
  const double blob_factor =
      metadata.size == 0 ? 0.0
                         : static_cast<double>(live_blob_bytes) / metadata.size;
  std::vector<Weight> weights;
  for (const rocksdb::LevelMetaData& level : metadata.levels) {
    if (!level.files.empty()) {
      plan->sorted_runs += level.level == 0
                               ? static_cast<uint32_t>(level.files.size())
                               : 1;
    }
    for (const rocksdb::SstFileMetaData& file : level.files) {
      if (!Touches(comparator, interval, file)) {
        continue;
      }
      plan->files++;
      const Status status =
          WeighFile(comparator, interval, file,
                    family.one_range ? UINT64_MAX / 4 : target_bytes,
                    blob_factor, plan, &weights);
      if (!status.ok()) {
        return status;
      }
    }
  }
  if (family.one_range) {
    weights.clear();
  }
  CutRanges(family, options, comparator, target_bytes, plan->estimated_bytes,
            &weights, ranges);
  return Status::OK();
}

}  // namespace sstferry
