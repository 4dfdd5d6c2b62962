#include "pipeline/pull/lane_client.h"

#include <algorithm>

#include "pipeline/base/blocked_time.h"
#include "pipeline/pull/chunk_check.h"

namespace sstferry {

using rocksdb::Status;

LaneClient::LaneClient(LaneShared* state, uint32_t lane)
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
    DropBuilt();
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
  answer_chain_ = PartDigest();
  StartTime();
  for (size_t i = 0; i < asked_.size() && status.ok(); ++i) {
    const bool has_begun = i == 0 && part_totals_.chunks != 0;
    if (asked_[i].sifts != nullptr || (asked_[i].of_delta && !has_begun)) {
      CompareAnew(&asked_[i]);
    }
    status = Ask(asked_[i], /*front=*/i == 0);
  }
  return status;
}

void LaneClient::CompareAnew(Asked* asked) const {
  const KeyInterval& all = (*state_->parts)[asked->part_id].interval;
  asked->of_delta = false;
  asked->delta.clear();
  asked->sifts.reset();
  asked->sift.reset();
  asked->rest.reset();
  asked->compares = true;
  asked->piece.end = all.end;
  asked->group_entries =
      asked->piece == all
          ? state_->comparer->ChooseGroupEntries(
                (*state_->parts)[asked->part_id])
          : 0;
}

Status LaneClient::Work() {
  Status status = AskAhead();
  while (status.ok() && !asked_.empty()) {
    const Part& part = (*state_->parts)[asked_.front().part_id];
    status = asked_.front().sifts != nullptr ? TakeSifted(part)
             : asked_.front().compares       ? ComparePart(part)
                                             : ReceivePart(part);
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
    status = ChooseAsked((*state_->parts)[*id], &asked);
    if (status.ok()) {
      status = AskNext(std::move(asked));
    }
  }
  return status;
}

// Where this side has nothing, there is nothing to compare. Where it has got
// chunks of the part in an earlier run, it had nothing.
Status LaneClient::ChooseAsked(const Part& part, Asked* asked) {
  asked->part_id = part.id;
  asked->piece = part.interval;
  if (!state_->refreshes() || part.need == PartNeed::kLookup ||
      state_->starts[part.id].received.chunks != 0) {
    return Status::OK();
  }
  std::optional<std::string> first;
  std::optional<std::string> last;
  const Status status = channel_.Final(
      state_->comparer->FindOutermost(part, part.interval, &first, &last));
  asked->compares = first.has_value();
  asked->group_entries = state_->comparer->ChooseGroupEntries(part);
  return status;
}

Status LaneClient::AskInstead(Asked next) {
  next.counted_bytes = planned_done_;
  asked_.pop_front();
  StartPart();
  return AskNext(std::move(next));
}

Status LaneClient::AskNext(Asked asked) {
  const bool sends = asked.delta.empty() && asked.sifts == nullptr;
  asked_.push_back(std::move(asked));
  if (asked_.size() == 1) {
    StartPart();
  }
  return sends ? Ask(asked_.back(), /*front=*/asked_.size() == 1)
               : AskForDelta();
}

Status LaneClient::AskForDelta() {
  // The first that is not compared by groups: its chunks come, or what it has
  // to ask is next.
  const auto next = std::find_if(
      asked_.begin(), asked_.end(), [](const Asked& asked) {
        return !asked.compares || asked.sifts != nullptr;
      });
  if (next == asked_.end()) {
    return Status::OK();
  }
  if (next->sift.has_value()) {
    const SiftRequest sift = std::move(*next->sift);
    next->sift.reset();
    return channel_.Send(FrameType::kSiftRequest, sift);
  }
  for (const DeltaRequest& request : next->delta) {
    RETURN_IF_ERROR(channel_.Send(FrameType::kDeltaRequest, request));
  }
  next->delta.clear();
  return Status::OK();
}

Status LaneClient::Ask(const Asked& asked, bool front) {
  if (asked.compares) {
    // The source reads at the same time as this side. Without groups this side
    // tells all that it has.
    GroupRequest groups;
    groups.part_id = asked.part_id;
    groups.group_entries = asked.group_entries;
    return asked.group_entries == 0
               ? Status::OK()
               : channel_.Send(FrameType::kGroupRequest, groups);
  }
  const PartStart& start = state_->starts[asked.part_id];
  PartRequest request;
  request.part_id = asked.part_id;
  request.received = start.received;
  request.of_delta = asked.of_delta;
  if (front) {
    request.received += part_totals_;
  }
  if (request.received.chunks != 0 && !asked.of_delta &&
      !(front && chunk_kind_ == PartKind::kDelta)) {
    request.after = front ? last_key_ : start.last_key;
  }
  if (front && open_ != nullptr) {
    request.open_bytes = open_->file.bytes();
  }
  request.chunk_bytes = chunk_bytes_;
  return channel_.Send(FrameType::kPartRequest, request);
}

// Both sides read at the same time.
Status LaneClient::ComparePart(const Part& part) {
  const Asked& asked = asked_.front();
  if (compare_ == nullptr) {
    StageScope scope(&clock_, Stage::kCheck);
    compare_ =
        state_->comparer->Begin(part, asked.piece, asked.group_entries);
    RETURN_IF_ERROR(channel_.Final(compare_->Read()));
    StartTime();
  }
  GroupReply reply;
  const bool asks_groups = asked.group_entries != 0;
  Status status = asks_groups ? ReceiveGroups(&reply) : Status::OK();
  bool equal = false;
  Asked next;
  if (status.ok()) {
    status = channel_.Final(compare_->Compare(asks_groups ? &reply : nullptr,
                                             &equal, &next.sift, &next.delta));
  }
  if (!status.ok()) {
    return status;
  }
  state_->parts_compared += asks_groups ? 1 : 0;
  state_->counters.progress++;
  retry_.ChunkDone();
  if (equal) {
    return EndPart(part);
  }
  next.part_id = part.id;
  if (next.sift.has_value()) {
    next.piece = asked.piece;
    next.compares = true;
    next.group_entries = asked.group_entries;
    next.sifts = std::move(compare_);
  } else {
    next.piece = next.delta.front().interval;
    next.of_delta = true;
    next.rest = compare_->rest();
  }
  return AskInstead(std::move(next));
}

Status LaneClient::TakeSifted(const Part& part) {
  Frame frame;
  SiftReply reply;
  RETURN_IF_ERROR(Receive(&frame));
  RETURN_IF_ERROR(channel_.Expect(frame, FrameType::kSiftReply));
  RETURN_IF_ERROR(channel_.Damaged(Decode(frame.payload, &reply)));
  Asked next;
  asked_.front().sifts->TakeSifted(reply, &next.delta);
  next.part_id = part.id;
  next.piece = next.delta.front().interval;
  next.of_delta = true;
  return AskInstead(std::move(next));
}

Status LaneClient::ReceiveGroups(GroupReply* reply) {
  Frame frame;
  RETURN_IF_ERROR(Receive(&frame));
  RETURN_IF_ERROR(channel_.Expect(frame, FrameType::kGroupReply));
  return channel_.Damaged(Decode(frame.payload, reply));
}

Status LaneClient::EndPart(const Part& part) {
  Totals totals = part_received_;
  totals += part_totals_;
  const std::optional<std::string> rest = asked_.front().rest;
  if (rest) {
    state_->starts[part.id].received = totals;
    Asked next;
    next.part_id = part.id;
    next.piece = {rest, part.interval.end};
    next.compares = true;
    return AskInstead(std::move(next));
  }
  const Status status = channel_.Final(EndPart(part, totals));
  if (status.ok()) {
    asked_.pop_front();
    StartPart();
  }
  return status;
}

// Sets what the lane knows of the part at its front, before a byte of it came.
void LaneClient::StartPart() {
  const PartStart start =
      asked_.empty() ? PartStart()
                     : state_->starts[asked_.front().part_id];
  part_received_ = start.received;
  last_key_ = start.last_key;
  part_totals_ = Totals();
  chunk_kind_ = PartKind::kRebuilt;
  planned_done_ =
      asked_.empty()
          ? 0
          : std::min(std::max(start.received.sst_bytes,
                              asked_.front().counted_bytes),
                     (*state_->parts)[asked_.front().part_id]
                         .bytes);
  compare_.reset();
  open_.reset();
  answer_totals_ = Totals();
  answer_chain_ = PartDigest();
}

void LaneClient::StartTime() {
  uint64_t bytes = state_->chunk_bytes;
  if (!asked_.empty()) {
    bytes = std::max(bytes,
                     (*state_->parts)[asked_.front().part_id]
                         .bytes);
  }
  until_ = Clock::now() + state_->chunk_time +
           state_->chunk_time_per_mib * ((bytes >> 20) + 1);
}

Status LaneClient::Receive(Frame* frame) {
  StageScope scope(&clock_, Stage::kReceive);
  BlockedScope blocked(&state_->counters.receive_blocked_micros);
  return channel_.Receive(frame, until_);
}

Status LaneClient::ReceivePart(const Part& part) {
  while (true) {
    Frame frame;
    Status status = Receive(&frame);
    if (!status.ok()) {
      return status;
    }
    if (frame.type == FrameType::kPartEnd) {
      PartEnd end;
      status = channel_.Damaged(Decode(frame.payload, &end));
      // Every frame was whole: asking again would only hide it.
      status = status.ok() ? channel_.Final(CheckTotals(part, end,
                                                        answer_totals_,
                                                        answer_chain_.Finish()))
                           : status;
      return status.ok() ? EndPart(part) : status;
    }
    ChunkBegin begin;
    status = channel_.Expect(frame, FrameType::kChunkBegin);
    if (status.ok()) {
      status = channel_.Damaged(Decode(frame.payload, &begin));
    }
    if (status.ok()) {
      status = ReceiveChunk(part, begin);
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

Status LaneClient::EndPart(const Part& part, const Totals& totals) {
  state_->counters.planned_bytes_done += part.bytes - planned_done_;
  planned_done_ = part.bytes;
  JournalPartDone done;
  done.part_id = part.id;
  done.totals = totals;
  {
    std::lock_guard<std::mutex> lock(state_->mu);
    state_->family_totals[part.family] += done.totals;
    state_->ended.push_back({part.id, done.totals});
  }
  return state_->store->EndPart(done);
}

void LaneClient::CountBytes(const Part& part, uint64_t bytes) {
  state_->counters.sst_bytes += bytes;
  state_->counters.progress += bytes;
  retry_.CountGood(IsBuilt(open_->begin.kind) ? 0 : bytes);
  const uint64_t room = part.bytes - planned_done_;
  const uint64_t counted = std::min(bytes, room);
  planned_done_ += counted;
  state_->counters.planned_bytes_done += counted;
}

}  // namespace sstferry
