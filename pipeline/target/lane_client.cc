#include "pipeline/target/lane_client.h"

#include "format/key_for_message.h"
#include "format/limits.h"
#include "pipeline/blocked_time.h"
#include "pipeline/target/chunk_check.h"
#include "pipeline/target/durable.h"
#include "pipeline/target/held_chunks.h"
#include "pipeline/target/tile_check.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

Status Mismatch(const std::string& what, uint64_t expected, uint64_t found) {
  return MakeStatus(EndState::kCorrupt,
                    what + ": expected " + std::to_string(expected) +
                        ", found " + std::to_string(found));
}

// A source keeps 8 MiB of what was not acknowledged.
constexpr uint64_t kAcknowledgeBytes = 1u << 20;

}  // namespace

LaneClient::LaneClient(PullState* state, uint32_t lane)
    : state_(state),
      lane_(lane),
      retry_(state, "lane " + std::to_string(lane)),
      clock_(&state->counters.stages, Stage::kIdle) {}

Status LaneClient::Run() {
  Status status;
  do {
    failure_ = LaneFailure::kFinal;
    status = Connect();
    if (status.ok()) {
      status = Work();
    }
    if (channel_ != nullptr) {
      state_->counters.wire_bytes +=
          channel_->bytes_received() + channel_->bytes_sent();
    }
    if (status.ok()) {
      return state_->ingestor->Flush(&clock_);
    }
    if (channel_ != nullptr) {
      channel_->Close();
      channel_ = nullptr;
    }
    clock_.Enter(Stage::kIdle);
    status = retry_.AwaitTurn(status, failure_);
  } while (status.ok());
  return status;
}

// Repeats what was asked on the connection before.
Status LaneClient::Connect() {
  StageScope scope(&clock_, Stage::kReceive);
  Status status = state_->open_lane(lane_, &channel_);
  if (!status.ok()) {
    channel_ = nullptr;
    failure_ = FailureToOpen(status);
    return status;
  }
  retry_.Connected();
  answer_totals_ = Totals();
  answer_chain_ = RangeDigest();
  StartTime();
  for (size_t i = 0; i < asked_.size() && status.ok(); ++i) {
    status = Ask(asked_[i], /*front=*/i == 0);
  }
  return status;
}

Status LaneClient::Work() {
  Status status = AskAhead();
  while (status.ok() && !asked_.empty()) {
    const Asked front = asked_.front();
    const Range& range = (*state_->ranges)[front.range_id];
    status = front.compares ? CompareRange(range) : ReceiveRange(range);
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
    status = AskNext({*id, compares});
  }
  return status;
}

Status LaneClient::AskNext(const Asked& asked) {
  asked_.push_back(asked);
  if (asked_.size() == 1) {
    StartRange();
  }
  return Ask(asked, /*front=*/asked_.size() == 1);
}

Status LaneClient::Ask(const Asked& asked, bool front) {
  if (asked.compares) {
    const Range& range = (*state_->ranges)[asked.range_id];
    DigestRequest request;
    request.family = range.family;
    request.interval = range.interval;
    return FromChannel(channel_->SendMessage(FrameType::kDigestRequest,
                                             request, WaitLimit::Forever()));
  }
  const RangeStart& start = state_->starts[asked.range_id];
  RangeRequest request;
  request.range_id = asked.range_id;
  request.held = start.held;
  if (front) {
    request.held += range_totals_;
  }
  if (request.held.chunks != 0) {
    request.after = front ? last_key_ : start.last_key;
  }
  if (front && open_ != nullptr) {
    request.open_bytes = open_->file.bytes();
    request.open_frames = open_->frames;
  }
  return FromChannel(channel_->SendMessage(FrameType::kRangeRequest, request,
                                           WaitLimit::Forever()));
}

// Both sides read at the same time.
Status LaneClient::CompareRange(const Range& range) {
  if (!ours_.has_value()) {
    StageScope scope(&clock_, Stage::kCheck);
    DigestReply ours;
    const Status status = Final(state_->digest(range, &ours));
    if (!status.ok()) {
      return status;
    }
    ours_ = ours;
    StartTime();
  }
  Frame frame;
  DigestReply theirs;
  Status status = Receive(&frame);
  if (status.ok()) {
    status = Expect(frame, FrameType::kDigestReply);
  }
  if (status.ok()) {
    status = Damaged(theirs.DecodeFrom(frame.payload));
  }
  if (!status.ok()) {
    return status;
  }
  const bool equal =
      ours_->entries == theirs.entries && ours_->content == theirs.content;
  state_->ranges_compared++;
  state_->counters.received_bytes++;  // progress
  retry_.ChunkDone();
  if (equal) {
    status = Final(EndRange(range, Totals()));
  }
  asked_.pop_front();
  StartRange();
  return equal ? status : AskNext({range.id, /*compares=*/false});
}

// What the lane knows of the range at its front, before a byte of it came.
void LaneClient::StartRange() {
  const RangeStart start =
      asked_.empty() ? RangeStart()
                     : state_->starts[asked_.front().range_id];
  range_held_ = start.held;
  last_key_ = start.last_key;
  range_totals_ = Totals();
  range_carried_ = false;
  planned_done_ =
      asked_.empty() ? 0
                     : std::min(start.held.sst_bytes,
                                (*state_->ranges)[asked_.front().range_id]
                                    .estimated_bytes);
  ours_.reset();
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

Status LaneClient::FromChannel(const Status& status) {
  if (!status.ok()) {
    // Closed on this side is lost, too, unless all of the pull ends.
    const EndState state = EndStateOf(status);
    const bool lost =
        state == EndState::kDeadPeer ||
        (state == EndState::kCancelled && state_->stop != nullptr &&
         !state_->stop->stopped());
    // Inside a frame it may be the length that is wrong.
    const bool too_slow =
        state == EndState::kTooSlow && channel_->can_receive();
    failure_ = lost ? LaneFailure::kLost
               : too_slow || state == EndState::kCancelled
                   ? LaneFailure::kFinal
                   : LaneFailure::kDamaged;
  }
  return status;
}

Status LaneClient::Damaged(const Status& status) {
  failure_ = LaneFailure::kDamaged;
  return status;
}

Status LaneClient::Final(const Status& status) {
  failure_ = LaneFailure::kFinal;
  return status;
}

// The source's own End is its last word, but for one that begins again.
Status LaneClient::Expect(const Frame& frame, FrameType type) {
  const Status status = channel_->ExpectType(frame, type);
  if (frame.type != FrameType::kEnd) {
    return Damaged(status);
  }
  const EndState state = EndStateOf(status);
  failure_ =
      state == EndState::kCancelled || state == EndState::kSnapshotGone
          ? LaneFailure::kLost
          : LaneFailure::kFinal;
  return status;
}

Status LaneClient::Receive(Frame* frame) {
  StageScope scope(&clock_, Stage::kReceive);
  BlockedScope blocked(&state_->counters.receive_blocked_micros);
  return FromChannel(state_->guard->Receive(channel_, frame, until_));
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
      status = Damaged(end.DecodeFrom(frame.payload));
      // Every frame was whole: asking again would only hide it.
      status = status.ok() ? Final(CheckRangeEnd(range, end)) : status;
      if (status.ok()) {
        asked_.pop_front();
        StartRange();
      }
      return status;
    }
    ChunkBegin begin;
    status = Expect(frame, FrameType::kChunkBegin);
    if (status.ok()) {
      status = Damaged(begin.DecodeFrom(frame.payload));
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

Status LaneClient::CheckTurn(const Range& range,
                             const ChunkBegin& begin) const {
  if (begin.range_id != range.id || begin.ordinal != next_ordinal()) {
    return MakeStatus(EndState::kCorrupt,
                      "chunk: expected range " + std::to_string(range.id) +
                          " chunk " + std::to_string(next_ordinal()) +
                          ", found range " + std::to_string(begin.range_id) +
                          " chunk " + std::to_string(begin.ordinal));
  }
  const bool carried = begin.kind == ChunkKind::kCarried;
  if (carried && !state_->takes_carried) {
    return MakeStatus(EndState::kCorrupt,
                      "chunk: expected a rebuilt one as agreed, found a "
                      "carried one");
  }
  if (range_carried_ || (carried && next_ordinal() != 0)) {
    return MakeStatus(EndState::kCorrupt,
                      "chunk: expected a carried one to be the only one of "
                      "its range, found another");
  }
  return Status::OK();
}

// A new chunk's file, or the open one's where the source goes on with it.
Status LaneClient::OpenForChunk(const Range& range, const ChunkBegin& begin,
                                const std::string& path) {
  const Status status = CheckTurn(range, begin);
  if (!status.ok()) {
    return Damaged(status);
  }
  const uint64_t open_bytes = open_ != nullptr ? open_->file.bytes() : 0;
  if (begin.first_byte != 0 &&
      (begin.first_byte != open_bytes || begin.kind != open_->begin.kind ||
       begin.file_bytes != open_->begin.file_bytes)) {
    return Damaged(MakeStatus(EndState::kCorrupt,
                              "chunk: expected to go on at byte " +
                                  std::to_string(open_bytes) + ", found " +
                                  std::to_string(begin.first_byte)));
  }
  if (begin.first_byte != 0) {
    return Status::OK();
  }
  DropChunk();
  open_ = std::make_unique<OpenChunk>(state_, path, &buffer_);
  open_->begin = begin;
  return Final(open_->file.Open());
}

void LaneClient::DropChunk() {
  if (open_ != nullptr) {
    state_->counters.sst_bytes -= open_->file.bytes();
    open_.reset();
  }
}

Status LaneClient::ReceiveChunk(const Range& range, const ChunkBegin& begin) {
  StagedChunk chunk;
  chunk.family = range.family;
  chunk.record.kind = begin.kind;
  chunk.path = state_->staging_dir + "/" + StagedName(range.id, begin.ordinal);
  ChunkEnd& end = chunk.record.chunk;
  Status status = OpenForChunk(range, begin, chunk.path);
  if (status.ok()) {
    status = StoreChunk(range, &end);
  }
  if (status.ok()) {
    status = CheckStored(range, &chunk);
  }
  if (!status.ok()) {
    return WithContext(status, EndStateOf(status),
                       "range " + std::to_string(range.id) + " chunk " +
                           std::to_string(begin.ordinal));
  }
  open_.reset();
  retry_.ChunkDone();
  for (Totals* totals : {&range_totals_, &answer_totals_}) {
    totals->chunks++;
    totals->entries += end.entries;
    totals->key_value_bytes += end.key_bytes + end.value_bytes;
    totals->sst_bytes += end.file_bytes;
  }
  answer_chain_.AddChunk(end.digest);
  last_key_ = end.largest;
  range_carried_ = begin.kind == ChunkKind::kCarried;
  CountChunk(chunk);
  status = Final(state_->ingestor->Add(std::move(chunk), &clock_));
  // The source may forget all that lies before the next chunk.
  return status.ok() ? SendAck(range.id, static_cast<uint32_t>(next_ordinal()),
                               /*bytes=*/0)
                     : status;
}

void LaneClient::CountChunk(const StagedChunk& chunk) {
  const ChunkEnd& end = chunk.record.chunk;
  state_->counters.entries += end.entries;
  state_->counters.key_value_bytes += end.key_bytes + end.value_bytes;
  std::lock_guard<std::mutex> lock(state_->mu);
  if (chunk.record.kind == ChunkKind::kRebuilt) {
    state_->chunks_built++;
    return;
  }
  state_->chunks_carried++;
  state_->chunks_unchecked += chunk.record.unchecked ? 1 : 0;
  state_->sst_bytes_carried += end.file_bytes;
}

Status LaneClient::ReceiveInto(StagingFile* file, Frame* frame,
                               size_t* data_bytes) {
  StageScope scope(&clock_, Stage::kReceive);
  std::atomic<uint64_t>* const waited =
      &state_->counters.receive_blocked_micros;
  FrameHeader header;
  Status status;
  {
    BlockedScope blocked(waited);
    status =
        FromChannel(state_->guard->ReceiveHeader(channel_, &header, until_));
  }
  const bool is_data = header.type == FrameType::kChunkData;
  const bool compressed = is_data && (header.flags & kFrameFlagZstd) != 0;
  char* room = nullptr;
  if (status.ok() && is_data && !compressed) {
    status = RoomForData(header.payload_bytes, file, &room);
  }
  if (status.ok()) {
    BlockedScope blocked(waited);
    status = FromChannel(state_->guard->ReceivePayload(channel_, room, frame));
    *data_bytes = frame->payload.size();
  }
  return status.ok() && compressed ? Unpack(*frame, file, data_bytes) : status;
}

Status LaneClient::RoomForData(size_t bytes, StagingFile* file, char** room) {
  if (bytes == 0) {
    // Would count towards no limit.
    return Damaged(
        MakeStatus(EndState::kCorrupt,
                   "chunk data: expected bytes, found an empty frame"));
  }
  if (file->bytes() + bytes > kMaxChunkFileBytes) {
    return Damaged(Mismatch("chunk bytes at most", kMaxChunkFileBytes,
                            file->bytes() + bytes));
  }
  StageScope scope(&clock_, Stage::kStageWrite);
  return Final(file->Room(bytes, room));
}

// Receives the rest of the open chunk and checks what its frames' digests and
// the ChunkEnd say of each other; the file is synced where durability asks.
Status LaneClient::StoreChunk(const Range& range, ChunkEnd* end) {
  Status status;
  Frame frame;
  size_t data_bytes = 0;
  while (status.ok()) {
    status = ReceiveInto(&open_->file, &frame, &data_bytes);
    if (!status.ok() || frame.type != FrameType::kChunkData) {
      break;
    }
    // The frame's digest was right: now the bytes belong to the file.
    open_->file.Commit(data_bytes);
    open_->digest.AddFrame(frame.digest);
    open_->frames++;
    CountBytes(range, data_bytes);
    status = Acknowledge(range);
  }
  if (status.ok()) {
    status = Expect(frame, FrameType::kChunkEnd);
  }
  if (status.ok()) {
    status = Damaged(end->DecodeFrom(frame.payload));
  }
  if (!status.ok()) {
    return status;
  }
  const Digest128 digest = open_->digest.Finish();
  const uint64_t announced = open_->begin.file_bytes;
  if (end->file_bytes != open_->file.bytes()) {
    status = Mismatch("chunk bytes", end->file_bytes, open_->file.bytes());
  } else if (announced != 0 && end->file_bytes != announced) {
    status = Mismatch("bytes of the chunk as it began", announced,
                      end->file_bytes);
  } else if (!(end->digest == digest)) {
    status = MakeStatus(EndState::kCorrupt,
                        "chunk digest: expected " + ToHex(end->digest) +
                            ", found " + ToHex(digest));
  }
  if (!status.ok()) {
    return BadChunk(status);
  }
  StageScope scope(&clock_, Stage::kSync);
  FaultPoint("LaneClient:ChunkWritten");
  status = Final(open_->file.Finish(state_->sync_chunks));
  FaultPoint("LaneClient:ChunkSynced");
  return status;
}

// Nothing of it is worth keeping: the next request is for all of it.
Status LaneClient::BadChunk(const Status& status) {
  DropChunk();
  retry_.ChunkBad();
  return Damaged(status);
}

Status LaneClient::Acknowledge(const Range& range) {
  const uint64_t bytes = open_->file.bytes();
  if (open_->begin.kind != ChunkKind::kRebuilt ||
      bytes - open_->acknowledged_bytes < kAcknowledgeBytes) {
    return Status::OK();
  }
  open_->acknowledged_bytes = bytes;
  return SendAck(range.id, open_->begin.ordinal, bytes);
}

Status LaneClient::SendAck(uint32_t range_id, uint32_t ordinal,
                           uint64_t bytes) {
  ChunkAck ack;
  ack.range_id = range_id;
  ack.ordinal = ordinal;
  ack.bytes = bytes;
  return FromChannel(channel_->SendMessage(FrameType::kChunkAck, ack,
                                           WaitLimit::Forever()));
}

Status LaneClient::Unpack(const Frame& frame, StagingFile* file,
                          size_t* data_bytes) {
  CompressedPayload compressed;
  Status status = ParseCompressedPayload(frame.payload, &compressed);
  char* room = nullptr;
  status = Damaged(status);
  if (status.ok()) {
    status = RoomForData(compressed.raw_bytes, file, &room);
  }
  if (status.ok()) {
    status = Damaged(decompressor_.Decompress(compressed, room));
  }
  *data_bytes = compressed.raw_bytes;
  PullCounters& counters = state_->counters;
  counters.compressed_frames++;
  counters.compressed_bytes += frame.payload.size();
  counters.decompressed_bytes += compressed.raw_bytes;
  return status;
}

Status LaneClient::CheckStored(const Range& range, StagedChunk* chunk) {
  StageScope scope(&clock_, Stage::kCheck);
  const Status status =
      CheckChunkBounds(*state_, range, next_ordinal(), last_key_,
                       chunk->record.chunk);
  if (!status.ok()) {
    return BadChunk(status);
  }
  const Status checked = CheckStagedChunk(state_->file_system,
                                          state_->families[range.family],
                                          /*all_blocks=*/false, chunk);
  // What is not corrupt this side cannot read again.
  return EndStateOf(checked) == EndState::kCorrupt ? BadChunk(checked)
                                                   : Final(checked);
}

Status LaneClient::CheckRangeEnd(const Range& range, const RangeEnd& end) {
  if (end.range_id != range.id || !(end.totals == answer_totals_) ||
      !(end.chain == answer_chain_.Finish())) {
    return MakeStatus(
        EndState::kCorrupt,
        "end of range " + std::to_string(range.id) + ": expected " +
            std::to_string(end.totals.entries) + " entries in " +
            std::to_string(end.totals.chunks) + " chunks, found " +
            std::to_string(answer_totals_.entries) + " in " +
            std::to_string(answer_totals_.chunks));
  }
  if (state_->replaces) {
    const Status cleared =
        CheckCleared(*state_, range, next_ordinal(), last_key_);
    if (!cleared.ok()) {
      return cleared;
    }
  }
  Totals totals = range_held_;
  totals += range_totals_;
  return EndRange(range, totals);
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
  return state_->ingestor->EndRange(done);
}

void LaneClient::CountBytes(const Range& range, uint64_t bytes) {
  state_->counters.sst_bytes += bytes;
  state_->counters.received_bytes += bytes;
  retry_.CountGood(bytes);
  const uint64_t room = range.estimated_bytes - planned_done_;
  const uint64_t counted = std::min(bytes, room);
  planned_done_ += counted;
  state_->counters.planned_bytes_done += counted;
}

}  // namespace sstferry
