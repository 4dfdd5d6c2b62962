#include "pipeline/pull/plan_receiver.h"

#include <algorithm>
#include <utility>

#include "format/limits.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Keys, names and reasons of a whole plan, as held in memory.
constexpr uint64_t kMaxPlanBytes = 64u << 20;

// An option or a range takes so much memory beyond its bytes on the wire.
constexpr uint64_t kItemBytes = 128;
constexpr uint64_t kMaxRangeBytes = 1ull << 44;

Status Malformed(const std::string& what) {
  return MakeStatus(EndState::kCorrupt, "plan: " + what);
}

}  // namespace

void PlanReceiver::Begin() {
  asked_at_ = Clock::now();
  if (!has_begun_) first_asked_at_ = asked_at_;
  has_begun_ = true;
  is_opened_ = false;
  is_complete_ = false;
  plan_ = SourcePlan();
  bytes_ = 0;
}

uint64_t PlanReceiver::SecondsSinceFirstAsked() const {
  return static_cast<uint64_t>(
      std::chrono::ceil<std::chrono::seconds>(Clock::now() - first_asked_at_)
          .count());
}

// The decoder bounds what the source says.
Status PlanReceiver::TakeBusy(const Frame& frame) {
  Busy busy;
  const Status status = busy.DecodeFrom(frame.payload);
  if (!status.ok()) {
    return status;
  }
  asks_again_at_ =
      Clock::now() + std::chrono::milliseconds(busy.retry_after_millis);
  return MakeStatus(EndState::kBusy,
                    "the source serves as many transfers as it may");
}

Status PlanReceiver::TakeOpened(const Frame& frame) {
  is_opened_ = true;
  asks_again_at_.reset();
  plan_.leaves_out = (frame.flags & kFrameFlagAsChunks) != 0;
  Status status = plan_.opened.DecodeFrom(frame.payload);
  if (status.ok()) {
    status = CheckOtherFiles(plan_.opened.other_files);
  }
  if (status.ok() && transfer_id_.has_value() &&
      plan_.opened.transfer_id != *transfer_id_) {
    return MakeStatus(EndState::kSnapshotGone,
                      "the source has another transfer now");
  }
  transfer_id_ = plan_.opened.transfer_id;
  source_resumed_ = plan_.opened.resumed;
  return status;
}

Status PlanReceiver::TakeFamily(const Frame& frame) {
  Family family;
  const Status status = family.DecodeFrom(frame.payload);
  if (status.ok() && (family.index != plan_.families.size() ||
                      family.index >= plan_.opened.family_count)) {
    return Malformed("column family " + std::to_string(family.index) +
                     " is out of turn");
  }
  bytes_ += kItemBytes * (family.description.options.size() +
                          family.description.table_options.size());
  plan_.families.push_back(std::move(family));
  return status;
}

Status PlanReceiver::TakeEnd(const Frame& frame) {
  PlanEnd end;
  const Status status = end.DecodeFrom(frame.payload);
  if (status.ok() && end.cover_count != plan_.covers.size()) {
    return Malformed("expected " + std::to_string(end.cover_count) +
                     " covers, found " + std::to_string(plan_.covers.size()));
  }
  if (status.ok() && (end.range_count != plan_.ranges.size() ||
                      plan_.families.size() != plan_.opened.family_count)) {
    return Malformed("expected " + std::to_string(end.range_count) +
                     " ranges, found " + std::to_string(plan_.ranges.size()));
  }
  if (status.ok() && plan_.clone.has_value()) {
    const Status units = CheckUnits();
    if (!units.ok()) {
      return units;
    }
  }
  return status.ok() ? CheckSamePlan() : status;
}

Status PlanReceiver::TakeCloneSet(const Frame& frame) {
  if (plan_.clone.has_value()) {
    return Malformed("expected the files of one clone, found another");
  }
  return plan_.clone.emplace().set.DecodeFrom(frame.payload);
}

Status PlanReceiver::AddFiles(const CloneFiles& batch) {
  if (!plan_.clone.has_value() ||
      batch.files.size() >
          plan_.clone->set.file_count - plan_.clone->files.size()) {
    return Malformed("expected at most as many files as were announced, "
                     "found more");
  }
  plan_.clone->files.insert(plan_.clone->files.end(), batch.files.begin(),
                            batch.files.end());
  bytes_ += sizeof(CloneFile) * batch.files.size();
  return Status::OK();
}

// The source cuts files into ranges; where it cuts, both sides compute.
Status PlanReceiver::CheckUnits() const {
  const ClonePlan& clone = *plan_.clone;
  if (clone.files.size() != clone.set.file_count) {
    return Malformed("expected " + std::to_string(clone.set.file_count) +
                     " files, found " + std::to_string(clone.files.size()));
  }
  std::vector<CloneUnit> units;
  Status status = CheckCloneFiles(clone.files);
  if (status.ok()) {
    status = CutIntoUnits(clone.files, clone.set.unit_bytes, &units);
  }
  if (!status.ok()) {
    return Malformed(MessageOf(status));
  }
  bool same = units.size() == plan_.ranges.size();
  for (size_t i = 0; same && i < units.size(); ++i) {
    const Range& range = plan_.ranges[i];
    same = range.family == 0 && range.interval == KeyInterval() &&
           range.estimated_bytes == units[i].bytes &&
           range.need == RangeNeed::kSend;
  }
  return same ? Status::OK()
              : Malformed("expected one range for each of " +
                          std::to_string(units.size()) +
                          " units of the files, found others");
}

Status PlanReceiver::Take(const Frame& frame) {
  bytes_ += frame.payload.size();
  if (bytes_ > kMaxPlanBytes) {
    return Malformed("expected at most " + std::to_string(kMaxPlanBytes) +
                     " bytes");
  }
  switch (frame.type) {
    case FrameType::kBusy:
      return TakeBusy(frame);
    case FrameType::kOpened:
      return TakeOpened(frame);
    case FrameType::kFamily:
      return TakeFamily(frame);
    case FrameType::kCloneSet:
      return TakeCloneSet(frame);
    case FrameType::kCloneFiles: {
      CloneFiles batch;
      const Status status = batch.DecodeFrom(frame.payload);
      return status.ok() ? AddFiles(batch) : status;
    }
    case FrameType::kRanges: {
      Ranges batch;
      const Status status = batch.DecodeFrom(frame.payload);
      return status.ok() ? AddRanges(std::move(batch)) : status;
    }
    case FrameType::kPlanItems: {
      PlanItems batch;
      const Status status = batch.DecodeFrom(frame.payload);
      return status.ok() ? AddItems(std::move(batch)) : status;
    }
    case FrameType::kCovers: {
      Covers batch;
      const Status status = batch.DecodeFrom(frame.payload);
      return status.ok() ? AddCovers(std::move(batch)) : status;
    }
    case FrameType::kSourceRecordPart: {
      SourceRecordPart part;
      const Status status = part.DecodeFrom(frame.payload);
      plan_.source_record += part.bytes;
      return plan_.source_record.size() <= kMaxSourceRecordBytes
                 ? status
                 : Malformed("expected a source record of at most " +
                             std::to_string(kMaxSourceRecordBytes) + " bytes");
    }
    case FrameType::kPlanEnd:
      return TakeEnd(frame);
    default:
      return Status::NotFound("no frame of a plan");
  }
}

// A plan that came before must be the same still.
Status PlanReceiver::CheckSamePlan() {
  std::string text;
  for (const Family& family : plan_.families) {
    family.EncodeTo(&text);
  }
  for (size_t at = 0; at < plan_.ranges.size(); ++at) {
    Ranges one;
    one.ranges.push_back(plan_.ranges[at]);
    one.EncodeTo(&text);
  }
  if (plan_.clone.has_value()) {
    plan_.clone->set.EncodeTo(&text);
    CloneFiles{plan_.clone->files}.EncodeTo(&text);
  }
  const Digest128 digest = DigestOf(text);
  if (digest_.has_value() && !(*digest_ == digest)) {
    return MakeStatus(EndState::kSnapshotGone,
                      "the source plans the same snapshot in another way now");
  }
  digest_ = digest;
  is_complete_ = true;
  return Status::OK();
}

Status PlanReceiver::AddItems(PlanItems batch) {
  for (PlanItem& item : batch.items) {
    if (item.family >= plan_.families.size()) {
      return Malformed("an item names an unknown column family");
    }
    if (plan_.items.size() >= kMaxRanges) {
      return Malformed("expected at most " + std::to_string(kMaxRanges) +
                       " items");
    }
    plan_.items.push_back(std::move(item));
  }
  return Status::OK();
}

Status PlanReceiver::AddRanges(Ranges batch) {
  for (Range& range : batch.ranges) {
    if (range.id != plan_.ranges.size() || range.id >= kMaxRanges ||
        range.family >= plan_.families.size()) {
      return Malformed("range " + std::to_string(range.id) +
                       " is out of turn");
    }
    bytes_ += kItemBytes;
    // Sums of these must not overflow.
    range.estimated_bytes = std::min(range.estimated_bytes, kMaxRangeBytes);
    plan_.estimated_bytes += range.estimated_bytes;
    plan_.ranges.push_back(std::move(range));
  }
  return Status::OK();
}

Status PlanReceiver::AddCovers(Covers batch) {
  for (Cover& cover : batch.covers) {
    if (cover.family >= plan_.families.size()) {
      return Malformed("a cover names an unknown column family");
    }
    if (plan_.covers.size() >= kMaxRanges) {
      return Malformed("expected at most " + std::to_string(kMaxRanges) +
                       " covers");
    }
    bytes_ += kItemBytes;
    plan_.covers.push_back(std::move(cover));
  }
  return Status::OK();
}

}  // namespace sstferry
