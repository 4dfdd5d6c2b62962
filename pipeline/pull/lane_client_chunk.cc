// Receives one chunk of a lane into staging at the rate limit of the pull,
// checks the chunk, and passes it to the store.
#include <algorithm>

#include "format/limits.h"
#include "pipeline/base/blocked_time.h"
#include "pipeline/disk/durable.h"
#include "pipeline/pull/chunk_check.h"
#include "pipeline/pull/lane_client.h"

namespace sstferry {
namespace {

using rocksdb::Status;

Status Mismatch(const std::string& what, uint64_t expected, uint64_t found) {
  return MakeStatus(EndState::kCorrupt,
                    what + ": expected " + std::to_string(expected) +
                        ", found " + std::to_string(found));
}

// Minimum size of the chunks that a lane requests while its connections break.
constexpr uint64_t kLeastChunkBytes = 256u << 10;

}  // namespace

// Opens the file of a new chunk. If the source resumes a chunk, keeps the file
// that is open.
Status LaneClient::OpenForChunk(const Part& part, const ChunkBegin& begin) {
  const Status status =
      CheckTurn(*state_, part, begin, next_ordinal(),
                asked_.front().is_compared(),
                chunk_kind_ != PartKind::kRebuilt);
  if (!status.ok()) {
    return channel_.Damaged(status);
  }
  const uint64_t open_bytes = open_ != nullptr ? open_->file.bytes() : 0;
  if (begin.first_byte != 0 &&
      (begin.first_byte != open_bytes || IsBuilt(begin.kind) ||
       begin.file_bytes != open_->begin.file_bytes)) {
    return channel_.Damaged(
        MakeStatus(EndState::kCorrupt,
                   "chunk: expected to resume at byte " +
                       std::to_string(open_bytes) + ", found " +
                       std::to_string(begin.first_byte)));
  }
  if (begin.first_byte != 0) {
    open_->digest = ChunkDigest();
    return Status::OK();
  }
  DropChunk();
  RETURN_IF_ERROR(AwaitSpace(part, begin));
  std::unique_ptr<OpenUnit> unit = OpenUnit::Make(state_, part.id);
  const StagingPlace place =
      PlaceOf(*state_, unit.get(), part.id, begin.ordinal);
  open_ = std::make_unique<OpenChunk>(state_, place, &buffer_, std::move(unit));
  open_->begin = begin;
  return channel_.Final(open_->file.Open());
}

// Blocks, and extends the chunk's time limit by the wait, because the source
// did not cause it.
Status LaneClient::AwaitSpace(const Part& part, const ChunkBegin& begin) {
  if (state_->space == nullptr) {
    return Status::OK();
  }
  StageScope scope(&clock_, Stage::kStageWrite);
  const Clock::time_point start = Clock::now();
  const uint64_t bytes =
      begin.file_bytes != 0
          ? begin.file_bytes
          : std::min(part.bytes, state_->chunk_bytes);
  const Status status = channel_.Final(state_->space->Pass(bytes));
  until_ += Clock::now() - start;
  return status;
}

void LaneClient::DropChunk() {
  if (open_ != nullptr) {
    state_->counters.sst_bytes -= open_->file.bytes();
    open_.reset();
  }
}

void LaneClient::DropBuilt() {
  if (open_ == nullptr || !IsBuilt(open_->begin.kind)) {
    return;
  }
  DropChunk();
  if (asked_.front().is_compared()) {
    return;  // Connect() counts the loss
  }
  retry_.ChunkLost();
  const uint64_t bytes = chunk_bytes_ != 0 ? chunk_bytes_ : state_->chunk_bytes;
  chunk_bytes_ = std::max(kLeastChunkBytes, bytes / 4);
}

Status LaneClient::ReceiveChunk(const Part& part, const ChunkBegin& begin) {
  StagedChunk chunk;
  chunk.family = part.family;
  chunk.record.kind = begin.kind;
  ChunkEnd& end = chunk.record.chunk;
  Status status = OpenForChunk(part, begin);
  if (status.ok()) {
    chunk.path = open_->file.path();
    status = StoreChunk(part, &end);
  }
  if (status.ok()) {
    status = CheckStored(part, &chunk);
  }
  if (!status.ok()) {
    return WithContext(status, EndStateOf(status),
                       "part " + std::to_string(part.id) + " chunk " +
                           std::to_string(begin.ordinal));
  }
  open_.reset();
  if (!asked_.front().is_compared()) {
    retry_.ChunkDone();
  }
  if (IsBuilt(begin.kind)) {
    chunk_bytes_ *= 2;
    chunk_bytes_ = chunk_bytes_ < state_->chunk_bytes ? chunk_bytes_ : 0;
  }
  for (Totals* totals : {&part_totals_, &answer_totals_}) {
    totals->chunks++;
    totals->entries += end.entries;
    totals->key_value_bytes += end.key_bytes + end.value_bytes;
    totals->sst_bytes += end.file_bytes;
  }
  answer_chain_.AddChunk(end.digest);
  last_key_ = end.largest;
  chunk_kind_ = begin.kind;
  if (asked_.front().is_compared()) {
    status = HoldChunk(std::move(chunk));
  } else {
    CountChunk(chunk);
    status = channel_.Final(state_->store->Add(std::move(chunk), &clock_));
  }
  ChunkAck ack;
  ack.part_id = part.id;
  ack.ordinal = begin.ordinal;
  return status.ok() ? channel_.Send(FrameType::kChunkAck, ack) : status;
}

Status LaneClient::HoldChunk(StagedChunk chunk) {
  StageScope scope(&clock_, Stage::kCheck);
  const Status taken = asked_.front().comparison->TakeChunk(chunk);
  asked_.front().held.push_back(std::move(chunk));
  return EndStateOf(taken) == EndState::kCorrupt ? channel_.Damaged(taken)
                                                 : channel_.Final(taken);
}

void LaneClient::CountChunk(const StagedChunk& chunk) {
  const ChunkEnd& end = chunk.record.chunk;
  state_->counters.entries += end.entries;
  state_->counters.key_value_bytes += end.key_bytes + end.value_bytes;
  std::lock_guard<std::mutex> lock(state_->mu);
  if (chunk.record.kind == PartKind::kRebuilt) {
    state_->chunks_built++;
    return;
  }
  if (chunk.record.kind == PartKind::kDelta) {
    state_->chunks_delta++;
    state_->entries_put += end.entries;
    state_->entries_deleted += chunk.deletions;
    return;
  }
  state_->chunks_unchecked += chunk.record.unchecked ? 1 : 0;
  state_->chunks_cloned++;
}

Status LaneClient::ReceiveInto(StagingFile* file, Frame* frame,
                               size_t* data_bytes) {
  StageScope scope(&clock_, Stage::kReceive);
  auto* const waited = &state_->counters.receive_blocked_micros;
  FrameHeader header;
  Status status;
  {
    BlockedScope blocked(waited);
    status = channel_.ReceiveHeader(&header, until_);
  }
  const bool is_data = header.type == FrameType::kChunkData;
  const bool compressed = is_data && (header.flags & kFrameFlagZstd) != 0;
  char* room = nullptr;
  if (status.ok() && is_data && !compressed) {
    status = RoomForData(header.payload_bytes, file, &room);
  }
  if (status.ok()) {
    BlockedScope blocked(waited);
    status = channel_.ReceivePayload(room, frame);
    *data_bytes = frame->payload.size();
  }
  return status.ok() && compressed ? Unpack(*frame, file, data_bytes) : status;
}

Status LaneClient::RoomForData(size_t bytes, StagingFile* file, char** room) {
  if (bytes == 0) {
    // Reject empty frames, because no limit would end a sequence of them.
    return channel_.Damaged(
        MakeStatus(EndState::kCorrupt,
                   "chunk data: expected bytes, found an empty frame"));
  }
  const uint64_t most = MostBytes(open_->begin);
  if (file->bytes() + bytes > most) {
    return channel_.Damaged(
        Mismatch("chunk bytes at most", most, file->bytes() + bytes));
  }
  StageScope scope(&clock_, Stage::kStageWrite);
  return channel_.Final(file->Room(bytes, room));
}

// Blocks, and extends the chunk's time limit by the wait, because the source
// did not cause it.
Status LaneClient::AwaitPace(uint64_t bytes) {
  StageScope scope(&clock_, Stage::kReceive);
  BlockedScope paced(&state_->counters.paced_micros);
  const Clock::time_point start = Clock::now();
  const Status status = channel_.Final(state_->pace.Take(bytes));
  until_ += Clock::now() - start;
  return status;
}

// Receives the rest of the open chunk, and compares its digest with the digest
// in the ChunkEnd. Syncs the file, except in a clone (UnitStore syncs units).
Status LaneClient::StoreChunk(const Part& part, ChunkEnd* end) {
  Status status;
  Frame frame;
  size_t data_bytes = 0;
  while (status.ok()) {
    status = ReceiveInto(&open_->file, &frame, &data_bytes);
    if (!status.ok() || frame.type != FrameType::kChunkData) {
      break;
    }
    status = AwaitPace(data_bytes);
    if (!status.ok()) {
      break;
    }
    // The digest of the frame was right, so its bytes may be added to the file.
    const rocksdb::Slice committed = open_->file.Commit(data_bytes);
    if (open_->unit != nullptr && open_->damage.ok()) {
      const Status added = open_->unit->Add(committed);
      // Do not fail before the unit's end. A source that verifies what it
      // sends, such as an archive, may then report that the unit was wrong, and
      // offer to send it again.
      if (EndStateOf(added) == EndState::kCorrupt) {
        open_->damage = added;
      } else {
        status = channel_.Final(added);
      }
    }
    open_->digest.AddFrame(frame.digest);
    CountBytes(part, data_bytes);
  }
  RETURN_IF_ERROR(status);
  RETURN_IF_ERROR(channel_.Expect(frame, FrameType::kChunkEnd));
  RETURN_IF_ERROR(channel_.Damaged(Decode(frame.payload, end)));
  const Digest128 digest = open_->digest.Finish();
  const uint64_t announced = open_->begin.file_bytes;
  if (end->file_bytes != open_->file.bytes()) {
    status = Mismatch("chunk bytes", end->file_bytes, open_->file.bytes());
  } else if (announced != 0 && end->file_bytes != announced) {
    status = Mismatch("size announced at the start of the chunk", announced,
                      end->file_bytes);
  } else if (!(end->digest == digest)) {
    status = MakeStatus(EndState::kCorrupt,
                        "chunk digest: expected " + ToHex(end->digest) +
                            ", found " + ToHex(digest));
  }
  if (!status.ok()) {
    return BadChunk(status);
  }
  if (!open_->damage.ok()) {
    return channel_.Final(open_->damage);
  }
  StageScope scope(&clock_, Stage::kSync);
  FaultPoint("LaneClient:ChunkWritten");
  status = channel_.Final(open_->file.Finish(
      state_->sync_chunks && open_->unit == nullptr, &state_->file_access));
  FaultPoint("LaneClient:ChunkSynced");
  return status;
}

// Drops the chunk, so that the next request asks for the whole chunk again.
Status LaneClient::BadChunk(const Status& status) {
  DropChunk();
  retry_.ChunkBad();
  return channel_.Damaged(status);
}

Status LaneClient::Unpack(const Frame& frame, StagingFile* file,
                          size_t* data_bytes) {
  CompressedPayload compressed;
  Status status = ParseCompressedPayload(frame.payload, &compressed);
  char* room = nullptr;
  status = channel_.Damaged(status);
  if (status.ok()) {
    status = RoomForData(compressed.raw_bytes, file, &room);
  }
  if (status.ok()) {
    status = channel_.Damaged(decompressor_.Decompress(compressed, room));
  }
  *data_bytes = compressed.raw_bytes;
  PullCounters& counters = state_->counters;
  counters.compressed_frames++;
  counters.compressed_bytes += frame.payload.size();
  counters.decompressed_bytes += compressed.raw_bytes;
  return status;
}

Status LaneClient::CheckStored(const Part& part, StagedChunk* chunk) {
  StageScope scope(&clock_, Stage::kCheck);
  if (state_->clone != nullptr) {
    return channel_.Final(open_->unit->Finish(chunk));
  }
  const Status status =
      CheckChunkBounds(*state_, part, asked_.front().piece, next_ordinal(),
                       last_key_, chunk->record);
  if (!status.ok()) {
    return BadChunk(status);
  }
  const Status checked = CheckStagedChunk(state_->file_system,
                                          state_->families[part.family],
                                          /*from_disk=*/false, chunk);
  // All other errors are failures of this side, which could not read the file.
  return EndStateOf(checked) == EndState::kCorrupt ? BadChunk(checked)
                                                   : channel_.Final(checked);
}

}  // namespace sstferry
