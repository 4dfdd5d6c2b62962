#include "pipeline/target/session/plan_receiver.h"

#include <algorithm>
#include <utility>

#include "format/limits.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Keys, names and reasons of a whole plan, as held in memory.
constexpr uint64_t kMaxPlanBytes = 64u << 20;

// What an option or a range takes in memory beyond its bytes on the wire.
constexpr uint64_t kItemBytes = 128;
constexpr uint64_t kMaxRangeBytes = 1ull << 44;

Status Malformed(const std::string& what) {
  return MakeStatus(EndState::kCorrupt, "plan: " + what);
}

}  // namespace

void PlanReceiver::Begin() {
  has_begun_ = true;
  is_opened_ = false;
  is_complete_ = false;
  plan_ = SourcePlan();
  bytes_ = 0;
}

Status PlanReceiver::TakeOpened(const Frame& frame) {
  is_opened_ = true;
  const Status status = plan_.opened.DecodeFrom(frame.payload);
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
  return status.ok() ? CheckSamePlan() : status;
}

Status PlanReceiver::Take(const Frame& frame) {
  bytes_ += frame.payload.size();
  if (bytes_ > kMaxPlanBytes) {
    return Malformed("expected at most " + std::to_string(kMaxPlanBytes) +
                     " bytes");
  }
  switch (frame.type) {
    case FrameType::kOpened:
      return TakeOpened(frame);
    case FrameType::kFamily:
      return TakeFamily(frame);
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
