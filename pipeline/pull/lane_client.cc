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

// Connects, and repeats the requests that were not answered on the previous
// connection.
Status LaneClient::Connect() {
  StageScope scope(&clock_, Stage::kReceive);
  RETURN_IF_ERROR(channel_.Open());
  retry_.Connected();
  answer_totals_ = Totals();
  answer_chain_ = PartDigest();
  StartTime();
  for (size_t i = 0; i < asked_.size(); ++i) {
    Asked& asked = asked_[i];
    // Compare the part again from its first piece, unless it still waits for
    // its first groups. In that case, keep what this side has read.
    const bool begins =
        asked.is_compared() &&
        (asked.is_later_piece || asked.awaits != Asked::Awaits::kGroups);
    if (begins) {
      asked.counted_bytes = i == 0 ? planned_done_ : asked.counted_bytes;
      CompareAnew(&asked);
    }
    if (begins && i == 0) {
      retry_.ChunkLost();
      StartPart();
    }
    RETURN_IF_ERROR(Ask(asked, /*front=*/i == 0));
  }
  return Status::OK();
}

void LaneClient::CompareAnew(Asked* asked) {
  for (const StagedChunk& chunk : asked->held) {
    state_->counters.sst_bytes -= chunk.record.chunk.file_bytes;
  }
  const Part& part = (*state_->parts)[asked->part_id];
  state_->starts[part.id].received = Totals();
  Asked anew;
  anew.part_id = part.id;
  anew.piece = part.interval;
  anew.awaits = Asked::Awaits::kGroups;
  anew.group_entries = state_->comparer->ChooseGroupEntries(part);
  anew.how = asked->how;
  anew.counted_bytes = asked->counted_bytes;
  *asked = std::move(anew);
}

Status LaneClient::Work() {
  Status status = AskAhead();
  while (status.ok() && !asked_.empty()) {
    const Part& part = (*state_->parts)[asked_.front().part_id];
    switch (asked_.front().awaits) {
      case Asked::Awaits::kGroups:
        status = ComparePart(part);
        break;
      case Asked::Awaits::kSifted:
        status = TakeSifted();
        break;
      case Asked::Awaits::kChunks:
      case Asked::Awaits::kDelta:
        status = ReceivePart(part);
        break;
    }
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

// Requests the chunks of a part if this side has no entries in it, or if an
// earlier run received chunks of it. Otherwise decides to compare the part.
Status LaneClient::ChooseAsked(const Part& part, Asked* asked) {
  asked->part_id = part.id;
  asked->piece = part.interval;
  if (!state_->refreshes() ||
      state_->starts[part.id].received.chunks != 0) {
    return Status::OK();
  }
  std::optional<std::string> first;
  std::optional<std::string> last;
  const Status status = channel_.Final(
      state_->comparer->FindOutermost(part, part.interval, &first, &last));
  if (first.has_value()) {
    asked->awaits = Asked::Awaits::kGroups;
    asked->group_entries = state_->comparer->ChooseGroupEntries(part);
  }
  return status;
}

LaneClient::Asked LaneClient::TakeFront() {
  Asked& front = asked_.front();
  Asked next;
  next.part_id = front.part_id;
  next.piece = front.piece;
  next.group_entries = front.group_entries;
  next.how = front.how;
  next.comparison = std::move(front.comparison);
  next.is_later_piece = front.is_later_piece;
  next.held = std::move(front.held);
  next.counted_bytes = planned_done_;
  return next;
}

Status LaneClient::AskInstead(Asked next) {
  asked_.pop_front();
  StartPart();
  return AskNext(std::move(next));
}

Status LaneClient::AskNext(Asked asked) {
  const bool sends = asked.delta.empty() && !asked.sift.has_value();
  asked_.push_back(std::move(asked));
  if (asked_.size() == 1) {
    StartPart();
  }
  return sends ? Ask(asked_.back(), /*front=*/asked_.size() == 1)
               : AskForDelta();
}

Status LaneClient::AskForDelta() {
  // Find the first request that does not wait for groups. Either the source is
  // already sending its chunks, or its next message is sent here.
  const auto next = std::find_if(
      asked_.begin(), asked_.end(), [](const Asked& asked) {
        return asked.awaits != Asked::Awaits::kGroups;
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
  if (asked.is_compared()) {
    // The source reads its entries for the groups while this side reads its
    // own. A later piece needs no groups, because its DeltaRequest will contain
    // all entries of this side.
    GroupRequest groups;
    groups.part_id = asked.part_id;
    groups.group_entries = asked.group_entries;
    return asked.is_later_piece
               ? Status::OK()
               : channel_.Send(FrameType::kGroupRequest, groups);
  }
  const PartStart& start = state_->starts[asked.part_id];
  PartRequest request;
  request.part_id = asked.part_id;
  request.received = start.received;
  if (front) {
    request.received += part_totals_;
  }
  if (request.received.chunks != 0) {
    request.after = front ? last_key_ : start.last_key;
  }
  if (front && open_ != nullptr) {
    request.open_bytes = open_->file.bytes();
  }
  request.chunk_bytes = chunk_bytes_;
  return channel_.Send(FrameType::kPartRequest, request);
}

// Reads this side's piece while the source reads its own, then compares them.
Status LaneClient::ComparePart(const Part& part) {
  Asked& asked = asked_.front();
  if (asked.comparison == nullptr) {
    asked.comparison =
        state_->comparer->Begin(part, asked.group_entries, asked.how);
  }
  if (!asked.was_read) {
    StageScope scope(&clock_, Stage::kCheck);
    RETURN_IF_ERROR(channel_.Final(asked.comparison->Read()));
    asked.was_read = true;
    StartTime();
  }
  GroupReply reply;
  RETURN_IF_ERROR(asked.is_later_piece ? Status::OK() : ReceiveGroups(&reply));
  std::optional<SiftRequest> sift;
  std::vector<DeltaRequest> delta;
  RETURN_IF_ERROR(channel_.Final(asked.comparison->Compare(
      asked.is_later_piece ? nullptr : &reply, &sift, &delta)));
  state_->parts_compared += asked.is_later_piece ? 0 : 1;
  state_->counters.progress++;
  if (!sift.has_value() && delta.empty()) {
    return EndPart(part);
  }
  Asked next = TakeFront();
  next.awaits = sift.has_value() ? Asked::Awaits::kSifted
                                 : Asked::Awaits::kDelta;
  next.piece = sift.has_value() ? next.piece : delta.front().interval;
  next.sift = std::move(sift);
  next.delta = std::move(delta);
  return AskInstead(std::move(next));
}

Status LaneClient::TakeSifted() {
  Frame frame;
  SiftReply reply;
  RETURN_IF_ERROR(Receive(&frame));
  RETURN_IF_ERROR(channel_.Expect(frame, FrameType::kSiftReply));
  RETURN_IF_ERROR(channel_.Damaged(Decode(frame.payload, &reply)));
  Asked next = TakeFront();
  next.awaits = Asked::Awaits::kDelta;
  next.comparison->TakeSifted(reply, &next.delta);
  next.piece = next.delta.front().interval;
  return AskInstead(std::move(next));
}

Status LaneClient::ReceiveGroups(GroupReply* reply) {
  Frame frame;
  RETURN_IF_ERROR(Receive(&frame));
  RETURN_IF_ERROR(channel_.Expect(frame, FrameType::kGroupReply));
  return channel_.Damaged(Decode(frame.payload, reply));
}

Status LaneClient::EndPart(const Part& part) {
  Asked& asked = asked_.front();
  Totals totals = part_received_;
  totals += part_totals_;
  if (asked.comparison != nullptr) {
    if (asked.comparison->rest().has_value()) {
      state_->starts[part.id].received = totals;
      Asked next = TakeFront();
      next.piece = {next.comparison->rest(), part.interval.end};
      next.awaits = Asked::Awaits::kGroups;
      next.is_later_piece = true;
      return AskInstead(std::move(next));
    }
    const Status proven = asked.comparison->Prove();
    if (!proven.ok()) {
      return EndUnproven(proven);
    }
    RETURN_IF_ERROR(EndProven());
  }
  RETURN_IF_ERROR(channel_.Final(RecordEnd(part, totals)));
  asked_.pop_front();
  StartPart();
  return Status::OK();
}

Status LaneClient::EndProven() {
  std::vector<StagedChunk> held = std::move(asked_.front().held);
  retry_.ChunkDone();
  {
    std::lock_guard<std::mutex> lock(state_->mu);
    state_->parts_proven++;
    state_->parts_delta += held.empty() ? 0 : 1;
  }
  for (StagedChunk& chunk : held) {
    CountChunk(chunk);
    RETURN_IF_ERROR(
        channel_.Final(state_->store->Add(std::move(chunk), &clock_)));
  }
  return Status::OK();
}

Status LaneClient::EndUnproven(const Status& status) {
  if (asked_.front().how == HowToTell::kEverything) {
    return channel_.Final(MakeStatus(
        EndState::kInternal,
        MessageOf(status) + "; the part still differed after a second "
                            "comparison with all entries; nothing was "
                            "ingested; only a swap can refresh the replica"));
  }
  {
    std::lock_guard<std::mutex> lock(state_->mu);
    state_->parts_unproven++;
  }
  if (state_->log) {
    state_->log(LogLevel::kWarning,
                "comparing a part with the source's again, this time with all "
                "of its entries: " +
                    MessageOf(status));
  }
  Asked next = TakeFront();
  next.how = HowToTell::kEverything;
  CompareAnew(&next);
  return AskInstead(std::move(next));
}

// Resets the members that describe the front part, before any of its bytes is
// received.
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
    RETURN_IF_ERROR(Receive(&frame));
    if (frame.type == FrameType::kPartEnd) {
      PartEnd end;
      RETURN_IF_ERROR(channel_.Damaged(Decode(frame.payload, &end)));
      // Different totals are final: every frame was intact, so a second request
      // could only hide the fault.
      RETURN_IF_ERROR(channel_.Final(
          CheckTotals(part, end, answer_totals_, answer_chain_.Finish())));
      return EndPart(part);
    }
    ChunkBegin begin;
    RETURN_IF_ERROR(channel_.Expect(frame, FrameType::kChunkBegin));
    RETURN_IF_ERROR(channel_.Damaged(Decode(frame.payload, &begin)));
    RETURN_IF_ERROR(ReceiveChunk(part, begin));
    if (asked_.size() < 2) {
      RETURN_IF_ERROR(AskAhead());
    }
    StartTime();
  }
}

Status LaneClient::RecordEnd(const Part& part, const Totals& totals) {
  state_->counters.planned_bytes_done += part.bytes - planned_done_;
  planned_done_ = part.bytes;
  JournalPartDone done;
  done.part_id = part.id;
  done.totals = totals;
  {
    std::lock_guard<std::mutex> lock(state_->mu);
    const bool is_whole =
        state_->refreshes() && !asked_.front().is_compared();
    state_->parts_whole += is_whole ? 1 : 0;
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
