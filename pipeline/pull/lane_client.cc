#include "pipeline/pull/lane_client.h"

#include <algorithm>

#include "pipeline/base/blocked_time.h"
#include "pipeline/pull/chunk_check.h"

namespace sstferry {

using rocksdb::Status;

LaneClient::LaneClient(PullState* state, uint32_t lane)
    : state_(state),
      channel_(state, lane),
      retry_(state, "lane " + std::to_string(lane)),
      clock_(&state->counters.stages, Stage::kIdle) {}

Status LaneClient::Run() {
  Status status;
  do {
    status = Connect();
    if (status.ok()) {
      status = Work();
    }
    channel_.Leave(/*close=*/!status.ok());
    if (status.ok()) {
      return state_->store->Flush(&clock_);
    }
    clock_.Enter(Stage::kIdle);
    status = retry_.AwaitTurn(status, channel_.failure());
  } while (status.ok());
  return status;
}

// Repeats what was asked on the connection before.
Status LaneClient::Connect() {
  StageScope scope(&clock_, Stage::kReceive);
  Status status = channel_.Open();
  if (!status.ok()) {
    return status;
  }
  retry_.Connected();
  answer_totals_ = Totals();
  answer_chain_ = RangeDigest();
  StartTime();
  for (size_t i = 0; i < asked_.size() && status.ok(); ++i) {
    const bool has_begun =
        i == 0 && (open_ != nullptr || range_totals_.chunks != 0);
    if (asked_[i].of_delta && !has_begun) {
      CompareAnew(&asked_[i]);
    }
    status = Ask(asked_[i], /*front=*/i == 0);
  }
  return status;
}

void LaneClient::CompareAnew(Asked* asked) const {
  const KeyInterval& all = (*state_->ranges)[asked->range_id].interval;
  asked->of_delta = false;
  asked->delta.clear();
  asked->rest.reset();
  asked->compares = true;
  asked->part.end = all.end;
  asked->group_entries =
      asked->part == all
          ? RangeCompare::ChooseGroupEntries(*state_, asked->range_id)
          : 0;
}

Status LaneClient::Work() {
  Status status = AskAhead();
  while (status.ok() && !asked_.empty()) {
    const Range& range = (*state_->ranges)[asked_.front().range_id];
    status = asked_.front().compares ? CompareRange(range)
                                     : ReceiveRange(range);
    if (status.ok()) {
      status = AskForDelta();
    }
    if (status.ok()) {
      status = AskAhead();
    }
  }
  return status;
}

Status LaneClient::AskAhead() {
  Status status;
  while (status.ok()) {
    const std::optional<uint32_t> id = state_->scheduler->Next(asked_.size());
    if (!id.has_value()) {
      break;
    }
    Asked asked;
    status = ChooseAsked((*state_->ranges)[*id], &asked);
    if (status.ok()) {
      status = AskNext(std::move(asked));
    }
  }
  return status;
}

// Where this side has nothing, there is nothing to compare. Where it has got
// chunks of the range in an earlier run, it had nothing.
Status LaneClient::ChooseAsked(const Range& range, Asked* asked) {
  asked->range_id = range.id;
  asked->part = range.interval;
  if (!state_->refreshes || range.need == RangeNeed::kLookup ||
      state_->starts[range.id].held.chunks != 0) {
    return Status::OK();
  }
  std::optional<std::string> first;
  std::optional<std::string> last;
  const Status status = channel_.Final(
      state_->outermost(range, range.interval, &first, &last));
  asked->compares = first.has_value();
  asked->group_entries = RangeCompare::ChooseGroupEntries(*state_, range.id);
  return status;
}

Status LaneClient::AskInstead(Asked next) {
  next.counted_bytes = planned_done_;
  asked_.pop_front();
  StartRange();
  return AskNext(std::move(next));
}

Status LaneClient::AskNext(Asked asked) {
  const bool sends = asked.delta.empty();
  asked_.push_back(std::move(asked));
  if (asked_.size() == 1) {
    StartRange();
  }
  return sends ? Ask(asked_.back(), /*front=*/asked_.size() == 1)
               : AskForDelta();
}

Status LaneClient::AskForDelta() {
  // The first that is not compared: its chunks come, or its delta is next.
  const auto next =
      std::find_if(asked_.begin(), asked_.end(),
                   [](const Asked& asked) { return !asked.compares; });
  if (next == asked_.end() || next->delta.empty()) {
    return Status::OK();
  }
  const Status status = channel_.Sent(RangeCompare::AskForDelta(
      next->delta, WaitLimit{state_->chunk_time}, channel_.get()));
  if (status.ok()) next->delta.clear();
  return status;
}

Status LaneClient::Ask(const Asked& asked, bool front) {
  if (asked.compares) {
    // Without groups this side tells all that it has.
    const Range& range = (*state_->ranges)[asked.range_id];
    return asked.group_entries == 0
               ? Status::OK()
               : channel_.Sent(RangeCompare::Ask(range, asked.group_entries,
                                                 WaitLimit{state_->chunk_time},
                                                 channel_.get()));
  }
  const RangeStart& start = state_->starts[asked.range_id];
  RangeRequest request;
  request.range_id = asked.range_id;
  request.held = start.held;
  request.of_delta = asked.of_delta;
  if (front) {
    request.held += range_totals_;
  }
  if (request.held.chunks != 0 && !asked.of_delta &&
      !(front && range_kind_ == ChunkKind::kDelta)) {
    request.after = front ? last_key_ : start.last_key;
  }
  if (front && open_ != nullptr) {
    request.open_bytes = open_->file.bytes();
    request.open_frames = open_->frames;
  }
  return channel_.Send(FrameType::kRangeRequest, request);
}

// Both sides read at the same time.
Status LaneClient::CompareRange(const Range& range) {
  const Asked& asked = asked_.front();
  if (!compare_.has_value()) {
    StageScope scope(&clock_, Stage::kCheck);
    compare_.emplace(state_, &range, asked.part, asked.group_entries);
    const Status status = channel_.Final(compare_->Read());
    if (!status.ok()) {
      return status;
    }
    StartTime();
  }
  GroupReply reply;
  const bool asks_groups = asked.group_entries != 0;
  Status status = asks_groups ? ReceiveGroups(&reply) : Status::OK();
  bool equal = false;
  Asked next;
  if (status.ok()) {
    status = channel_.Final(compare_->Compare(asks_groups ? &reply : nullptr,
                                             &equal, &next.delta));
  }
  if (!status.ok()) {
    return status;
  }
  state_->ranges_compared += asks_groups ? 1 : 0;
  state_->counters.progress++;
  retry_.ChunkDone();
  if (equal) {
    return EndPart(range);
  }
  next.range_id = range.id;
  next.part = next.delta.front().interval;
  next.of_delta = true;
  next.rest = compare_->rest();
  return AskInstead(std::move(next));
}

Status LaneClient::ReceiveGroups(GroupReply* reply) {
  Frame frame;
  Status status = Receive(&frame);
  if (status.ok()) {
    status = channel_.Expect(frame, FrameType::kGroupReply);
  }
  return status.ok() ? channel_.Damaged(reply->DecodeFrom(frame.payload))
                     : status;
}

Status LaneClient::EndPart(const Range& range) {
  Totals totals = range_held_;
  totals += range_totals_;
  const std::optional<std::string> rest = asked_.front().rest;
  if (rest) {
    state_->starts[range.id].held = totals;
    Asked next;
    next.range_id = range.id;
    next.part = {rest, range.interval.end};
    next.compares = true;
    return AskInstead(std::move(next));
  }
  const Status status = channel_.Final(EndRange(range, totals));
  if (status.ok()) {
    asked_.pop_front();
    StartRange();
  }
  return status;
}

// Sets what the lane knows of the range at its front, before a byte of it came.
void LaneClient::StartRange() {
  const RangeStart start =
      asked_.empty() ? RangeStart()
                     : state_->starts[asked_.front().range_id];
  range_held_ = start.held;
  last_key_ = start.last_key;
  range_totals_ = Totals();
  range_kind_ = ChunkKind::kRebuilt;
  planned_done_ =
      asked_.empty()
          ? 0
          : std::min(std::max(start.held.sst_bytes,
                              asked_.front().counted_bytes),
                     (*state_->ranges)[asked_.front().range_id]
                         .estimated_bytes);
  compare_.reset();
  open_.reset();
  answer_totals_ = Totals();
  answer_chain_ = RangeDigest();
}

void LaneClient::StartTime() {
  uint64_t bytes = state_->chunk_bytes;
  if (!asked_.empty()) {
    bytes = std::max(bytes,
                     (*state_->ranges)[asked_.front().range_id]
                         .estimated_bytes);
  }
  until_ = Clock::now() + state_->chunk_time +
           state_->chunk_time_per_mib * ((bytes >> 20) + 1);
}

Status LaneClient::Receive(Frame* frame) {
  StageScope scope(&clock_, Stage::kReceive);
  BlockedScope blocked(&state_->counters.receive_blocked_micros);
  return channel_.Receive(frame, until_);
}

Status LaneClient::ReceiveRange(const Range& range) {
  while (true) {
    Frame frame;
    Status status = Receive(&frame);
    if (!status.ok()) {
      return status;
    }
    if (frame.type == FrameType::kRangeEnd) {
      RangeEnd end;
      status = channel_.Damaged(end.DecodeFrom(frame.payload));
      if (status.ok() && asked_.front().of_delta && open_ != nullptr) {
        DropChunk();  // the source no longer has the rest of it
        Asked again = asked_.front();
        CompareAnew(&again);
        return AskInstead(std::move(again));
      }
      // Every frame was whole: asking again would only hide it.
      status = status.ok() ? channel_.Final(CheckTotals(range, end,
                                                        answer_totals_,
                                                        answer_chain_.Finish()))
                           : status;
      return status.ok() ? EndPart(range) : status;
    }
    ChunkBegin begin;
    status = channel_.Expect(frame, FrameType::kChunkBegin);
    if (status.ok()) {
      status = channel_.Damaged(begin.DecodeFrom(frame.payload));
    }
    if (status.ok()) {
      status = ReceiveChunk(range, begin);
    }
    if (status.ok() && asked_.size() < 2) {
      status = AskAhead();
    }
    if (!status.ok()) {
      return status;
    }
    StartTime();
  }
}

Status LaneClient::EndRange(const Range& range, const Totals& totals) {
  state_->counters.planned_bytes_done += range.estimated_bytes - planned_done_;
  planned_done_ = range.estimated_bytes;
  JournalRangeDone done;
  done.range_id = range.id;
  done.totals = totals;
  {
    std::lock_guard<std::mutex> lock(state_->mu);
    state_->family_totals[range.family] += done.totals;
    state_->ended.push_back({range.id, done.totals});
  }
  return state_->store->EndRange(done);
}

void LaneClient::CountBytes(const Range& range, uint64_t bytes) {
  state_->counters.sst_bytes += bytes;
  state_->counters.progress += bytes;
  retry_.CountGood(bytes);
  const uint64_t room = range.estimated_bytes - planned_done_;
  const uint64_t counted = std::min(bytes, room);
  planned_done_ += counted;
  state_->counters.planned_bytes_done += counted;
}

}  // namespace sstferry
