#include "pipeline/target/lane/lane_client.h"

#include <algorithm>

#include "pipeline/base/blocked_time.h"
#include "pipeline/target/lane/tile_check.h"

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
    asked_[i].compares |= !asked_[i].delta.empty();
    asked_[i].delta.clear();
    status = Ask(asked_[i], /*front=*/i == 0);
  }
  return status;
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
    const bool compares =
        (*state_->ranges)[*id].need == RangeNeed::kCompare &&
        state_->starts[*id].held.chunks == 0;
    status = AskNext(
        {*id, compares, RangeCompare::ChooseGroupEntries(*state_, *id), {}});
  }
  return status;
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
    const Range& range = (*state_->ranges)[asked.range_id];
    return channel_.Sent(RangeCompare::Ask(*state_, range, asked.group_entries,
                                           WaitLimit{state_->chunk_time},
                                           channel_.get()));
  }
  const RangeStart& start = state_->starts[asked.range_id];
  RangeRequest request;
  request.range_id = asked.range_id;
  request.held = start.held;
  if (front) {
    request.held += range_totals_;
  }
  if (request.held.chunks != 0 && !(front && range_kind_ == ChunkKind::kDelta)) {
    const TileEnd& end = front ? held_end_ : start.end;
    const Range& range = (*state_->ranges)[asked.range_id];
    request.after =
        state_->replaces
            ? NextBegin(state_->families[range.family].comparator, end)
            : end.key;
  }
  if (front && open_ != nullptr) {
    request.open_bytes = open_->file.bytes();
    request.open_frames = open_->frames;
  }
  return channel_.Send(FrameType::kRangeRequest, request);
}

// Both sides read at the same time.
Status LaneClient::CompareRange(const Range& range) {
  if (!compare_.has_value()) {
    StageScope scope(&clock_, Stage::kCheck);
    compare_.emplace(state_, &range, asked_.front().group_entries);
    const Status status = channel_.Final(compare_->Read());
    if (!status.ok()) {
      return status;
    }
    StartTime();
  }
  Frame frame;
  CompareResult result = CompareResult::kEqual;
  Asked next{range.id, /*compares=*/false,
             asked_.front().group_entries, {}};
  Status status = Receive(&frame);
  if (status.ok()) {
    status = channel_.Expect(frame, RangeCompare::ReplyType(*state_));
  }
  if (status.ok()) {
    status = channel_.Damaged(
        compare_->TakeReply(frame.payload, &result, &next.delta));
  }
  if (!status.ok()) {
    return status;
  }
  state_->ranges_compared++;
  state_->counters.progress++;
  retry_.ChunkDone();
  if (result == CompareResult::kEqual) {
    status = channel_.Final(EndRange(range, Totals()));
  }
  asked_.pop_front();
  StartRange();
  return result == CompareResult::kEqual ? status : AskNext(std::move(next));
}

// What the lane knows of the range at its front, before a byte of it came.
void LaneClient::StartRange() {
  const RangeStart start =
      asked_.empty() ? RangeStart()
                     : state_->starts[asked_.front().range_id];
  range_held_ = start.held;
  held_end_ = start.end;
  range_totals_ = Totals();
  range_kind_ = ChunkKind::kRebuilt;
  planned_done_ =
      asked_.empty() ? 0
                     : std::min(start.held.sst_bytes,
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
      // Every frame was whole: asking again would only hide it.
      status = status.ok() ? channel_.Final(CheckRangeEnd(range, end)) : status;
      Totals totals = range_held_;
      totals += range_totals_;
      status = status.ok() ? channel_.Final(EndRange(range, totals)) : status;
      if (status.ok()) {
        asked_.pop_front();
        StartRange();
      }
      return status;
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

Status LaneClient::CheckRangeEnd(const Range& range, const RangeEnd& end) {
  Status status =
      CheckTotals(range, end, answer_totals_, answer_chain_.Finish());
  // A lookup may find nothing to send.
  if (status.ok() && state_->replaces && range_kind_ != ChunkKind::kDelta &&
      range.need != RangeNeed::kLookup) {
    status = CheckCleared(*state_, range, next_ordinal(), held_end_);
  }
  return status;
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
