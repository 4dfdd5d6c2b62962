// How a transfer plans a refresh: what changed since the target's last one. A
// seed is planned in the same way, as a target that remembers nothing.
#include <algorithm>
#include <random>

#include "format/limits.h"
#include "format/message/for_each_batch.h"
#include "pipeline/base/key_interval.h"
#include "pipeline/base/tile.h"
#include "pipeline/source/transfer/transfer.h"
#include "rocksdb/merge_operator.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Of what is compared before it is sent, so that what differs is small.
constexpr uint64_t kComparedPerChunk = 16;

uint64_t NewNonce() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

// Where ranges of a family had better end: right behind the last keys of the
// target's files, in orders that tell what comes behind a key.
std::vector<std::string> BoundsOf(const rocksdb::Comparator* order,
                                  uint32_t family,
                                  const TargetMemory& memory) {
  std::vector<std::string> bounds;
  for (const TargetBound& bound : memory.bounds) {
    // A key that ends in a NUL byte is hardly an entry: rather a deletion that
    // closed an earlier chunk, and closes this one's, too.
    std::string end;
    const bool closes = !bound.key.empty() && bound.key.back() == '\0';
    if (!closes) {
      end = ClosedEnd(order, bound.key);
    }
    const bool known = closes ? FirstKeyAfter(order, bound.key, &end)
                              : order->Compare(bound.key, end) < 0;
    if (bound.family == family && known && end.size() <= kMaxKeyBytes) {
      bounds.push_back(std::move(end));
    }
  }
  std::sort(bounds.begin(), bounds.end(),
            [order](const std::string& a, const std::string& b) {
              return order->Compare(a, b) < 0;
            });
  return bounds;
}

}  // namespace

Backings Transfer::BackingsOf(size_t index) const {
  const SnapshotFamily& source = snapshot_->families()[index];
  const TransferFamily& family = families_[index];
  FamilyEvidence evidence;
  evidence.family_id = family.handle->GetID();
  const auto merge = db()->GetOptions(family.handle).merge_operator;
  evidence.merge_operator = merge != nullptr ? merge->Name()
                                             : source.unknown_merge_operator;
  evidence.in_memory =
      snapshot_->wal_not_flushed() && snapshot_->wal_holds_entries();
  evidence.wal = snapshot_->wal_digest();
  evidence.nonce = nonce_;
  return Backings(family.handle->GetComparator(), &family.plan.files, evidence);
}

// Sets the family's segments, and what its chunks clear.
void Transfer::CompareFamilyAt(size_t index) {
  TransferFamily& family = families_[index];
  if (nonce_ == 0) {
    nonce_ = NewNonce();
  }
  CoverComparison how;
  how.order = family.handle->GetComparator();
  how.compare = request_.compare;
  how.selection = request_.interval;
  how.sequence = snapshot_->sequence();
  std::vector<Cover> known;
  if (is_refresh()) {
    family.replaces.emplace();
    for (size_t i = 0; i < memory_.families.size(); ++i) {
      const TargetFamily& theirs = memory_.families[i];
      if (theirs.name != family.wire.description.name) {
        continue;
      }
      family.replaces = ReplacedFamily{theirs.first, theirs.last};
      family.bounds = BoundsOf(how.order, static_cast<uint32_t>(i), memory_);
      for (const Cover& cover : memory_.covers) {
        if (cover.family == i) {
          known.push_back(cover);
          known.back().family = family.wire.index;
        }
      }
    }
  }
  how.target_is_empty =
      !family.replaces.has_value() || !family.replaces->first.has_value();
  family.segments = CompareCovers(how, BackingsOf(index), std::move(known));
}

uint64_t Transfer::BytesToRebuild(const TransferFamily& family) const {
  if (!is_refresh()) {
    return RebuiltBytes(family.plan);
  }
  const rocksdb::Comparator* const order = family.handle->GetComparator();
  FamilyPlan sent;
  sent.blob_factor = family.plan.blob_factor;
  for (const FilePlan& file : family.plan.files) {
    const SegmentSpan span =
        SegmentsOf(order, family.segments, file.smallest, file.largest);
    const bool meets = std::any_of(
        family.segments.begin() + span.first,
        family.segments.begin() + span.end, [](const PlanSegment& segment) {
          return segment.need == RangeNeed::kSend;
        });
    if (meets) {
      sent.files.push_back(file);
    }
  }
  return RebuiltBytes(sent);
}

// By segment: the files that hold keys of it, and into how many parts segments
// cut each of them.
std::vector<std::vector<Transfer::FilePart>> Transfer::PartsOf(
    const TransferFamily& family) const {
  const rocksdb::Comparator* const order = family.handle->GetComparator();
  std::vector<std::vector<FilePart>> parts(family.segments.size());
  for (const FilePlan& file : family.plan.files) {
    const SegmentSpan span =
        SegmentsOf(order, family.segments, file.smallest, file.largest);
    for (size_t i = span.first; i < span.end; ++i) {
      parts[i].push_back({&file, span.end - span.first});
    }
  }
  return parts;
}

// One range, weighed without a look into any file.
void Transfer::AddUnchanged(const PlanSegment& segment,
                            const std::vector<FilePart>& files,
                            TransferFamily* family) {
  Range range;
  range.id = static_cast<uint32_t>(ranges_.size());
  range.family = family->wire.index;
  range.interval = segment.interval;
  range.need = RangeNeed::kUnchanged;
  for (const FilePart& part : files) {
    range.estimated_bytes += part.file->bytes / part.of;
  }
  family->plan.estimated_bytes += range.estimated_bytes;
  ranges_.push_back(std::move(range));
}

Status Transfer::CutSegment(const PlanSegment& segment,
                            const std::vector<FilePart>& files,
                            uint64_t target_bytes, TransferFamily* family) {
  if (segment.need == RangeNeed::kUnchanged) {
    AddUnchanged(segment, files, family);
    return Status::OK();
  }
  const rocksdb::Comparator* const order = family->handle->GetComparator();
  FamilyPlan part;
  part.blob_factor = family->plan.blob_factor;
  for (const FilePart& one : files) {
    part.files.push_back(*one.file);
    FilePlan& mine = part.files.back();
    mine.carry = mine.carry && segment.need == RangeNeed::kSend &&
                 HoldsSpan(segment.interval, order, mine.smallest,
                           mine.largest);
  }
  PlannerOptions options = planner_options();
  options.interval = segment.interval;
  options.replaces = family->replaces;
  options.need = segment.need;
  options.bounds = &family->bounds;
  if (segment.need == RangeNeed::kCompare) {
    target_bytes = std::max(request_.chunk_bytes / kComparedPerChunk,
                            kMinRangeBytes);
  }
  std::vector<CarriedFile> carried;
  Status status;
  if (family->replaces.has_value()) {
    status = CheckReplaceable(db(), family->handle, segment.interval,
                              *family->replaces);
  }
  if (status.ok()) {
    status = CutFamily(planner_family(*family), options, target_bytes, &part,
                       &ranges_, &carried);
  }
  for (CarriedFile& file : carried) {
    carried_.emplace(file.range_id, std::move(file));
  }
  family->plan.estimated_bytes += part.estimated_bytes;
  family->plan.estimated_entries += part.estimated_entries;
  return status;
}

// What was remembered as it is now stays so; else it is as the ranges are cut.
void Transfer::AddCovers(const PlanSegment& segment, size_t first_range,
                         const Backings& backings) {
  if (request_.purpose != Purpose::kPull) {
    return;
  }
  if (segment.cover.has_value()) {
    covers_.push_back(*segment.cover);
    return;
  }
  if (segment.need == RangeNeed::kUnchanged) {
    return;
  }
  for (size_t i = first_range; i < ranges_.size(); ++i) {
    Cover cover;
    cover.family = ranges_[i].family;
    cover.interval = ranges_[i].interval;
    cover.sequence = snapshot_->sequence();
    backings.Fill(&cover);
    covers_.push_back(std::move(cover));
  }
}

void Transfer::AddSegmentItem(const TransferFamily& family,
                              const PlanSegment& segment, size_t first_range) {
  for (size_t i = first_range;
       i < ranges_.size() && items_.size() < kMaxRanges; ++i) {
    PlanItem item;
    item.family = family.wire.index;
    item.interval = ranges_[i].interval;
    item.bytes = ranges_[i].estimated_bytes;
    const CarriedFile* const file = carried(ranges_[i].id);
    item.action = segment.need == RangeNeed::kUnchanged ? PlanAction::kSkip
                  : file != nullptr                     ? PlanAction::kCarry
                                                        : PlanAction::kRebuild;
    item.reason = segment.need == RangeNeed::kCompare
                      ? "if digests differ: " + segment.reason
                      : segment.reason;
    if (file != nullptr) {
      item.file = file->path.substr(file->path.rfind('/') + 1);
    }
    items_.push_back(std::move(item));
  }
}

Status Transfer::SendPlanItems(Channel* control) {
  return ForEachBatch(items_, [control](std::vector<PlanItem> batch) {
    return control->SendMessage(FrameType::kPlanItems,
                                PlanItems{std::move(batch)});
  });
}

}  // namespace sstferry
