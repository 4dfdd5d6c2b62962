// What a SourceSession makes of the frames of a plan.
#include <algorithm>

#include "format/limits.h"
#include "format/message/for_each_batch.h"
#include "pipeline/target/session/source_session.h"

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

Status SourceSession::TakeOpened(const Frame& frame) {
  opened_ = true;
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

Status SourceSession::HandlePlanFrame(const Frame& frame) {
  const bool in_plan = opening_ && !planned_;
  if (!in_plan ||
      (frame.type == FrameType::kOpened) == opened_) {
    // An End frame says why; anything else is out of turn.
    return channel_->ExpectType(
        frame, opening_ && !opened_ ? FrameType::kOpened : FrameType::kPing);
  }
  plan_bytes_ += frame.payload.size();
  if (plan_bytes_ > kMaxPlanBytes) {
    return Malformed("expected at most " + std::to_string(kMaxPlanBytes) +
                     " bytes");
  }
  switch (frame.type) {
    case FrameType::kOpened:
      return TakeOpened(frame);
    case FrameType::kFamily: {
      Family family;
      const Status status = family.DecodeFrom(frame.payload);
      if (status.ok() && (family.index != plan_.families.size() ||
                          family.index >= plan_.opened.family_count)) {
        return Malformed("column family " + std::to_string(family.index) +
                         " is out of turn");
      }
      plan_bytes_ += kItemBytes * (family.description.options.size() +
                                   family.description.table_options.size());
      plan_.families.push_back(std::move(family));
      return status;
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
    case FrameType::kPlanEnd: {
      PlanEnd end;
      const Status status = end.DecodeFrom(frame.payload);
      if (status.ok() && end.cover_count != plan_.covers.size()) {
        return Malformed("expected " + std::to_string(end.cover_count) +
                         " covers, found " +
                         std::to_string(plan_.covers.size()));
      }
      if (status.ok() &&
          (end.range_count != plan_.ranges.size() ||
           plan_.families.size() != plan_.opened.family_count)) {
        return Malformed("expected " + std::to_string(end.range_count) +
                         " ranges, found " +
                         std::to_string(plan_.ranges.size()));
      }
      return status.ok() ? EndPlan() : status;
    }
    default:
      return channel_->ExpectType(frame, FrameType::kPlanEnd);
  }
}

// A plan that came before must be the same still.
Status SourceSession::EndPlan() {
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
  if (plan_digest_.has_value() && !(*plan_digest_ == digest)) {
    return MakeStatus(EndState::kSnapshotGone,
                      "the source plans the same snapshot in another way now");
  }
  plan_digest_ = digest;
  planned_ = true;
  connected_ = true;
  backoff_.Succeeded();
  resumed_ = connections_ > 1;
  changed_.notify_all();
  return Status::OK();
}

Status SourceSession::AddItems(PlanItems batch) {
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

Status SourceSession::AddRanges(Ranges batch) {
  for (Range& range : batch.ranges) {
    if (range.id != plan_.ranges.size() || range.id >= kMaxRanges ||
        range.family >= plan_.families.size()) {
      return Malformed("range " + std::to_string(range.id) +
                       " is out of turn");
    }
    plan_bytes_ += kItemBytes;
    // Sums of these must not overflow.
    range.estimated_bytes = std::min(range.estimated_bytes, kMaxRangeBytes);
    plan_.estimated_bytes += range.estimated_bytes;
    plan_.ranges.push_back(std::move(range));
  }
  return Status::OK();
}

Status SourceSession::AddCovers(Covers batch) {
  for (Cover& cover : batch.covers) {
    if (cover.family >= plan_.families.size()) {
      return Malformed("a cover names an unknown column family");
    }
    if (plan_.covers.size() >= kMaxRanges) {
      return Malformed("expected at most " + std::to_string(kMaxRanges) +
                       " covers");
    }
    plan_bytes_ += kItemBytes;
    plan_.covers.push_back(std::move(cover));
  }
  return Status::OK();
}

// What the target has, for a source that is to plan a refresh of it.
Status SourceSession::SendMemory(Channel* channel,
                                 const TargetMemory& memory) {
  const WaitLimit limit = WaitLimit::Within(kSendLimit);
  Status status = ForEachBatch(
      memory.families, [&](std::vector<TargetFamily> batch) {
        return channel->SendMessage(FrameType::kTargetFamilies,
                                    TargetFamilies{std::move(batch)}, limit);
      });
  if (status.ok()) {
    status = ForEachBatch(memory.covers, [&](std::vector<Cover> batch) {
      return channel->SendMessage(FrameType::kCovers,
                                  Covers{std::move(batch)}, limit);
    });
  }
  if (status.ok()) {
    status = ForEachBatch(memory.bounds, [&](std::vector<TargetBound> batch) {
      return channel->SendMessage(FrameType::kTargetBounds,
                                  TargetBounds{std::move(batch)}, limit);
    });
  }
  return status;
}

// A source that was asked again on another connection, perhaps another process,
// is told what it need not have sent.
void SourceSession::SendHeld(Channel* channel,
                             const std::vector<HeldRange>& ranges) {
  const Status status =
      ForEachBatch(ranges, [channel](std::vector<HeldRange> batch) {
        return channel->SendMessage(FrameType::kHeld, Held{std::move(batch)},
                                    WaitLimit::Within(kSendLimit));
      });
  // A send that fails is found by the reader.
  status.PermitUncheckedError();
}

}  // namespace sstferry
