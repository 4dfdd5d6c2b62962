// Cuts the families of a refresh into parts, as RefreshSource has decided.
#include <algorithm>

#include "format/limits.h"
#include "pipeline/refresh/group_index.h"
#include "pipeline/refresh/refresh_source.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Maximum number of parts per chunk size for compared intervals.
constexpr uint64_t kComparedPerChunk = 16;

// Entries of a part whose groups both sides compare: a quarter of the limit of
// an index, because this is an estimate.
constexpr uint64_t kEntriesPerCompared = kMaxIndexEntries / 4;
// Used if RocksDB has not read the number of entries of a file.
constexpr uint64_t kAssumedEntryBytes = 64;

// Number of keys that one part looks up.
constexpr size_t kLeastLookups = 2048;
constexpr size_t kMostLookups = 65536;

PlanAction ActionOf(const PlanSegment& segment) {
  switch (segment.need) {
    case PartNeed::kUnchanged:
      return PlanAction::kSkip;
    case PartNeed::kLookup:
      return PlanAction::kLookup;
    case PartNeed::kCompare:
      return PlanAction::kDelta;
    case PartNeed::kSend:
      break;
  }
  return PlanAction::kRebuild;
}

// Returns the size of a compared part: as large as the memory for keys allows,
// because each part makes a file.
uint64_t ComparedBytes(const PlanOrder& order, const TransferFamily& family) {
  const uint64_t small = std::max(
      order.request.chunk_bytes / kComparedPerChunk, kMinRangeBytes);
  uint64_t bytes = 0;
  uint64_t entries = 0;
  for (const FilePlan& file : family.plan.files) {
    bytes += file.bytes;
    entries += file.entries;
  }
  const uint64_t by_entries =
      (entries == 0 ? kAssumedEntryBytes : bytes / entries) *
      kEntriesPerCompared;
  const uint64_t most = MostPartBytes(order.request.chunk_bytes);
  return std::clamp(
      std::min(by_entries, bytes / (order.lanes * kPartsPerLane)),
      std::min(small, most), most);
}

}  // namespace

uint64_t RefreshSource::BytesToSend(const TransferFamily& family) const {
  const std::vector<PlanSegment>& segments = families_[family.index].segments;
  const rocksdb::Comparator* const order = family.handle->GetComparator();
  FamilyPlan sent;
  sent.blob_factor = family.plan.blob_factor;
  for (const FilePlan& file : family.plan.files) {
    const SegmentSpan span =
        SegmentsOf(order, segments, file.smallest, file.largest);
    const bool meets = std::any_of(
        segments.begin() + span.first, segments.begin() + span.end,
        [](const PlanSegment& segment) {
          return segment.need == PartNeed::kSend;
        });
    if (meets) {
      sent.files.push_back(file);
    }
  }
  return RebuiltBytes(sent);
}

Status RefreshSource::Cut(const PlanOrder& order, uint64_t target_bytes,
                          TransferFamily* family) {
  std::vector<PlanSegment>& segments = families_[family->index].segments;
  const Backings backings = BackingsOf(*family);
  const std::vector<std::vector<FilePart>> parts = PartsOf(*family);
  for (size_t i = 0; i < segments.size(); ++i) {
    if (order.ended()) {
      return MakeStatus(EndState::kCancelled, "while planning");
    }
    const size_t first_part = plan_->parts.size();
    RETURN_IF_ERROR(
        CutSegment(order, segments[i], parts[i], target_bytes, family));
    if (order.request.purpose == Purpose::kPull) {
      AddIntervals(segments[i], first_part, backings);
    } else if (order.request.purpose == Purpose::kPlan) {
      AddItems(segments[i], first_part);
    }
  }
  segments.clear();
  return Status::OK();
}

std::vector<std::vector<RefreshSource::FilePart>> RefreshSource::PartsOf(
    const TransferFamily& family) const {
  const std::vector<PlanSegment>& segments = families_[family.index].segments;
  const rocksdb::Comparator* const order = family.handle->GetComparator();
  std::vector<std::vector<FilePart>> parts(segments.size());
  for (const FilePlan& file : family.plan.files) {
    const SegmentSpan span =
        SegmentsOf(order, segments, file.smallest, file.largest);
    for (size_t i = span.first; i < span.end; ++i) {
      parts[i].push_back({&file, span.end - span.first});
    }
  }
  return parts;
}

Status RefreshSource::CutSegment(const PlanOrder& order,
                                 const PlanSegment& segment,
                                 const std::vector<FilePart>& files,
                                 uint64_t target_bytes,
                                 TransferFamily* family) {
  if (segment.need == PartNeed::kUnchanged) {
    AddUnchanged(segment, files, family);
    return Status::OK();
  }
  if (segment.need == PartNeed::kLookup) {
    CutLookup(order, segment, family);
    return Status::OK();
  }
  FamilyPlan share;
  share.blob_factor = family->plan.blob_factor;
  for (const FilePart& one : files) {
    share.files.push_back(*one.file);
  }
  PlannerOptions options = PlannerOptionsOf(order);
  options.interval = segment.interval;
  options.need = segment.need;
  if (segment.need == PartNeed::kCompare) {
    target_bytes = ComparedBytes(order, *family);
  }
  const Status status =
      CutFamily(PlannerFamilyOf(*family, told(*family)), options, target_bytes,
                &share, &plan_->parts);
  family->plan.estimated_bytes += share.estimated_bytes;
  family->plan.estimated_entries += share.estimated_entries;
  return status;
}

void RefreshSource::AddUnchanged(const PlanSegment& segment,
                                 const std::vector<FilePart>& files,
                                 TransferFamily* family) {
  Part part;
  part.id = static_cast<uint32_t>(plan_->parts.size());
  part.family = family->index;
  part.interval = segment.interval;
  part.need = PartNeed::kUnchanged;
  for (const FilePart& share : files) {
    part.bytes += share.file->bytes / share.of;
  }
  family->plan.estimated_bytes += part.bytes;
  plan_->parts.push_back(std::move(part));
}

// The keys of one part make one file at the target.
void RefreshSource::CutLookup(const PlanOrder& order,
                              const PlanSegment& segment,
                              TransferFamily* family) {
  const Decided& decided = families_[family->index];
  const ChangedKeys& keys = *decided.changed;
  const auto [first, last] =
      keys.Find(family->handle->GetComparator(), segment.interval);
  const uint64_t fit =
      order.request.chunk_bytes /
      std::max<uint64_t>(1, decided.changed_entry_bytes);
  const size_t most =
      std::clamp<size_t>(fit, kLeastLookups, kMostLookups);
  const size_t each = std::clamp<size_t>((last - first) / (2 * order.lanes),
                                         kLeastLookups, most);
  std::optional<std::string> begin = segment.interval.begin;
  for (size_t at = first; at < last || at == first; at += each) {
    const size_t next = std::min(last, at + each);
    Part part;
    part.id = static_cast<uint32_t>(plan_->parts.size());
    part.family = family->index;
    part.interval.begin = begin;
    part.interval.end = next < last ? std::optional(keys.key(next).ToString())
                                     : segment.interval.end;
    part.kind = PartKind::kDelta;
    part.need = PartNeed::kLookup;
    part.bytes = (next - at) * decided.changed_entry_bytes;
    begin = part.interval.end;
    family->plan.estimated_bytes += part.bytes;
    family->plan.estimated_entries += next - at;
    plan_->parts.push_back(std::move(part));
  }
}

void RefreshSource::AddIntervals(const PlanSegment& segment,
                                 size_t first_part,
                                 const Backings& backings) {
  if (!segment.intervals.empty()) {
    plan_->intervals.insert(plan_->intervals.end(), segment.intervals.begin(),
                            segment.intervals.end());
    return;
  }
  if (segment.need == PartNeed::kUnchanged) {
    return;
  }
  for (size_t i = first_part; i < plan_->parts.size(); ++i) {
    AddRecordOf(plan_->parts[i], backings);
  }
}

void RefreshSource::AddRecordOf(const Part& part, const Backings& backings) {
  IntervalRecord record;
  record.family = part.family;
  record.interval = part.interval;
  record.sequence = snapshot_.sequence();
  backings.Fill(&record);
  plan_->intervals.push_back(std::move(record));
}

void RefreshSource::AddItems(const PlanSegment& segment, size_t first_part) {
  for (size_t i = first_part;
       i < plan_->parts.size() && plan_->items.size() < kMaxParts; ++i) {
    PlanItem item;
    item.family = plan_->parts[i].family;
    item.interval = plan_->parts[i].interval;
    item.bytes = plan_->parts[i].bytes;
    item.action = ActionOf(segment);
    item.reason = segment.need == PartNeed::kCompare
                      ? "if digests differ: " + segment.reason
                      : segment.reason;
    plan_->items.push_back(std::move(item));
  }
}

}  // namespace sstferry
