#include "pipeline/target/lane_client.h"

#include "format/key_for_message.h"
#include "format/limits.h"
#include "format/sst_check.h"
#include "pipeline/blocked_time.h"
#include "pipeline/file_source.h"
#include "pipeline/key_interval.h"
#include "pipeline/rocksdb_compat.h"
#include "pipeline/target/durable.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

Status Mismatch(const std::string& what, uint64_t expected, uint64_t found) {
  return MakeStatus(EndState::kCorrupt,
                    what + ": expected " + std::to_string(expected) +
                        ", found " + std::to_string(found));
}

}  // namespace

LaneClient::LaneClient(PullState* state, Channel* channel, uint32_t lane)
    : state_(state),
      channel_(channel),
      lane_(lane),
      clock_(&state->counters.stages, Stage::kIdle) {}

Status LaneClient::Run() {
  Status status = AskAhead();
  while (status.ok() && !asked_.empty()) {
    const Range& range = (*state_->ranges)[asked_.front()];
    status = ReceiveRange(range);
    asked_.pop_front();
    if (status.ok()) {
      status = AskAhead();
    }
  }
  if (status.ok()) {
    status = state_->ingestor->Flush(&clock_);
  }
  state_->counters.wire_bytes +=
      channel_->bytes_received() + channel_->bytes_sent();
  return status;
}

Status LaneClient::AskAhead() {
  while (const std::optional<uint32_t> id =
             state_->scheduler->Next(asked_.size())) {
    RangeRequest request;
    request.range_id = *id;
    asked_.push_back(*id);
    const Status status = channel_->SendMessage(FrameType::kRangeRequest,
                                                request, WaitLimit::Forever());
    if (!status.ok()) {
      return status;
    }
  }
  return Status::OK();
}

Status LaneClient::Receive(Frame* frame) {
  StageScope scope(&clock_, Stage::kReceive);
  BlockedScope blocked(&state_->counters.receive_blocked_micros);
  return state_->guard->Receive(channel_, frame);
}

Status LaneClient::ReceiveRange(const Range& range) {
  range_totals_ = Totals{};
  range_chain_ = RangeDigest();
  last_key_.clear();
  range_carried_ = false;
  planned_done_ = 0;
  while (true) {
    Frame frame;
    Status status = Receive(&frame);
    if (!status.ok()) {
      return status;
    }
    if (frame.type == FrameType::kRangeEnd) {
      RangeEnd end;
      status = end.DecodeFrom(frame.payload);
      return status.ok() ? CheckRangeEnd(range, end) : status;
    }
    ChunkBegin begin;
    status = channel_->ExpectType(frame, FrameType::kChunkBegin);
    if (status.ok()) {
      status = begin.DecodeFrom(frame.payload);
    }
    if (status.ok()) {
      status = ReceiveChunk(range, begin);
    }
    if (!status.ok()) {
      return status;
    }
    if (asked_.size() < 2) {
      status = AskAhead();
      if (!status.ok()) {
        return status;
      }
    }
  }
}

Status LaneClient::CheckTurn(const Range& range,
                             const ChunkBegin& begin) const {
  if (begin.range_id != range.id || begin.ordinal != range_totals_.chunks) {
    return MakeStatus(EndState::kCorrupt,
                      "chunk: expected range " + std::to_string(range.id) +
                          " chunk " + std::to_string(range_totals_.chunks) +
                          ", found range " + std::to_string(begin.range_id) +
                          " chunk " + std::to_string(begin.ordinal));
  }
  const bool carried = begin.kind == ChunkKind::kCarried;
  if (carried && !state_->takes_carried) {
    return MakeStatus(EndState::kCorrupt,
                      "chunk: expected a rebuilt one as agreed, found a "
                      "carried one");
  }
  if (range_carried_ || (carried && range_totals_.chunks != 0)) {
    return MakeStatus(EndState::kCorrupt,
                      "chunk: expected a carried one to be the only one of "
                      "its range, found another");
  }
  return Status::OK();
}

Status LaneClient::ReceiveChunk(const Range& range, const ChunkBegin& begin) {
  Status status = CheckTurn(range, begin);
  if (!status.ok()) {
    return status;
  }
  StagedChunk chunk;
  chunk.family = range.family;
  chunk.record.kind = begin.kind;
  chunk.path = state_->staging_dir + "/" + std::to_string(range.id) + "-" +
               std::to_string(begin.ordinal) + ".sst";
  ChunkEnd& end = chunk.record.chunk;
  status = StoreChunk(range, chunk.path, &end);
  if (status.ok() && begin.file_bytes != 0 &&
      end.file_bytes != begin.file_bytes) {
    status = Mismatch("bytes of the chunk as it began", begin.file_bytes,
                      end.file_bytes);
  }
  if (status.ok()) {
    status = CheckStored(range, chunk.path, &chunk);
  }
  if (!status.ok()) {
    return WithContext(status, EndStateOf(status),
                       "range " + std::to_string(range.id) + " chunk " +
                           std::to_string(begin.ordinal));
  }
  range_totals_.chunks++;
  range_totals_.entries += end.entries;
  range_totals_.key_value_bytes += end.key_bytes + end.value_bytes;
  range_totals_.sst_bytes += end.file_bytes;
  range_chain_.AddChunk(end.digest);
  last_key_ = end.largest;
  range_carried_ = begin.kind == ChunkKind::kCarried;
  CountChunk(chunk);
  return state_->ingestor->Add(std::move(chunk), &clock_);
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
  state_->chunks_unchecked += chunk.unchecked ? 1 : 0;
  state_->sst_bytes_carried += end.file_bytes;
}

// The next frame; a chunk's data goes straight into the file's buffer, or is
// decompressed there: *data_bytes of them.
Status LaneClient::ReceiveInto(StagingFile* file, Frame* frame,
                               size_t* data_bytes) {
  StageScope scope(&clock_, Stage::kReceive);
  std::atomic<uint64_t>* const waited =
      &state_->counters.receive_blocked_micros;
  FrameHeader header;
  Status status;
  {
    BlockedScope blocked(waited);
    status = state_->guard->ReceiveHeader(channel_, &header);
  }
  const bool is_data = header.type == FrameType::kChunkData;
  const bool compressed = is_data && (header.flags & kFrameFlagZstd) != 0;
  char* room = nullptr;
  if (status.ok() && is_data && !compressed) {
    status = RoomForData(header.payload_bytes, file, &room);
  }
  if (status.ok()) {
    BlockedScope blocked(waited);
    status = state_->guard->ReceivePayload(channel_, room, frame);
    *data_bytes = frame->payload.size();
  }
  return status.ok() && compressed ? Unpack(*frame, file, data_bytes) : status;
}

Status LaneClient::RoomForData(size_t bytes, StagingFile* file, char** room) {
  if (bytes == 0) {
    // Would count towards no limit.
    return MakeStatus(EndState::kCorrupt,
                      "chunk data: expected bytes, found an empty frame");
  }
  if (file->bytes() + bytes > kMaxChunkFileBytes) {
    return Mismatch("chunk bytes at most", kMaxChunkFileBytes,
                    file->bytes() + bytes);
  }
  StageScope scope(&clock_, Stage::kStageWrite);
  return file->Room(bytes, room);
}

// Receives the data frames into `path` and checks what their digests and the
// ChunkEnd say of each other; the file is synced where durability asks.
Status LaneClient::StoreChunk(const Range& range, const std::string& path,
                              ChunkEnd* end) {
  StagingFile file(state_->file_system, path, &buffer_);
  Status status = file.Open();
  ChunkDigest digest;
  Frame frame;
  size_t data_bytes = 0;
  while (status.ok()) {
    status = ReceiveInto(&file, &frame, &data_bytes);
    if (!status.ok() || frame.type != FrameType::kChunkData) {
      break;
    }
    // The frame's digest was right: now the bytes belong to the file.
    file.Commit(data_bytes);
    digest.AddFrame(frame.digest);
    CountBytes(range, data_bytes);
  }
  if (status.ok()) {
    status = channel_->ExpectType(frame, FrameType::kChunkEnd);
  }
  if (status.ok()) {
    status = end->DecodeFrom(frame.payload);
  }
  if (!status.ok()) {
    return status;
  }
  if (end->file_bytes != file.bytes()) {
    return Mismatch("chunk bytes", end->file_bytes, file.bytes());
  }
  if (!(end->digest == digest.Finish())) {
    return MakeStatus(EndState::kCorrupt,
                      "chunk digest: expected " + ToHex(end->digest) +
                          ", found " + ToHex(digest.Finish()));
  }
  StageScope scope(&clock_, Stage::kSync);
  FaultPoint("LaneClient:ChunkWritten");
  status = file.Finish(state_->sync_chunks);
  FaultPoint("LaneClient:ChunkSynced");
  return status;
}

Status LaneClient::Unpack(const Frame& frame, StagingFile* file,
                          size_t* data_bytes) {
  CompressedPayload compressed;
  Status status = ParseCompressedPayload(frame.payload, &compressed);
  char* room = nullptr;
  if (status.ok()) {
    status = RoomForData(compressed.raw_bytes, file, &room);
  }
  if (status.ok()) {
    status = decompressor_.Decompress(compressed, room);
  }
  *data_bytes = compressed.raw_bytes;
  PullCounters& counters = state_->counters;
  counters.compressed_frames++;
  counters.compressed_bytes += frame.payload.size();
  counters.decompressed_bytes += compressed.raw_bytes;
  return status;
}

Status LaneClient::CheckBounds(const Range& range, const ChunkEnd& end) const {
  const rocksdb::Comparator* order =
      state_->families[range.family].comparator;
  const bool inside =
      order->Compare(end.smallest, end.largest) <= 0 &&
      HoldsSpan(range.interval, order, end.smallest, end.largest) &&
      (range_totals_.chunks == 0 ||
       order->Compare(end.smallest, last_key_) > 0);
  if (inside && end.range_id == range.id &&
      end.ordinal == range_totals_.chunks) {
    return Status::OK();
  }
  return MakeStatus(EndState::kCorrupt,
                    "chunk keys: expected inside the range and after the "
                    "chunk before, found " + KeyForMessage(end.smallest) +
                        " to " + KeyForMessage(end.largest));
}

Status LaneClient::CheckStored(const Range& range, const std::string& path,
                               StagedChunk* chunk) {
  StageScope scope(&clock_, Stage::kCheck);
  const PullFamily& family = state_->families[range.family];
  const ChunkEnd& end = chunk->record.chunk;
  Status status = CheckBounds(range, end);
  if (!status.ok()) {
    return status;
  }
  std::unique_ptr<FileSource> source;
  status = FileSource::Open(state_->file_system, path, &source);
  if (!status.ok()) {
    return status;
  }
  ChunkExpectation expected;
  expected.smallest = end.smallest;
  expected.largest = end.largest;
  expected.num_entries = end.entries;
  expected.key_bytes = end.key_bytes;
  expected.allow_entities = kIngestsEntities;
  expected.comparator = family.comparator->Name();
  // A carried file keeps the version it was written in.
  const bool carried = chunk->record.kind == ChunkKind::kCarried;
  expected.format_version = carried ? 0 : family.format_version;
  if (carried) {
    expected.value_bytes = end.value_bytes;
  }
  expected.order = [&family](const Slice& a, const Slice& b) {
    return family.comparator->Compare(a, b);
  };
  ChunkFacts facts;
  status = CheckChunk(*source, expected, &facts);
  if (status.ok() && carried &&
      (facts.format_version < kMinTableFormatVersion ||
       facts.format_version > MaxReadableFormatVersion())) {
    status = Mismatch("chunk: format version at most",
                      MaxReadableFormatVersion(), facts.format_version);
  }
  chunk->unchecked = facts.checksum == SstChecksum::kNone;
  chunk->record.creating_database_id = facts.db_id;
  chunk->record.creating_session_id = facts.db_session_id;
  chunk->record.original_file_number = facts.original_file_number;
  return status;
}

Status LaneClient::CheckRangeEnd(const Range& range, const RangeEnd& end) {
  if (end.range_id != range.id || !(end.totals == range_totals_) ||
      !(end.chain == range_chain_.Finish())) {
    return MakeStatus(
        EndState::kCorrupt,
        "end of range " + std::to_string(range.id) + ": expected " +
            std::to_string(end.totals.entries) + " entries in " +
            std::to_string(end.totals.chunks) + " chunks, found " +
            std::to_string(range_totals_.entries) + " in " +
            std::to_string(range_totals_.chunks));
  }
  state_->counters.planned_bytes_done += range.estimated_bytes - planned_done_;
  planned_done_ = range.estimated_bytes;
  std::lock_guard<std::mutex> lock(state_->mu);
  state_->family_totals[range.family] += range_totals_;
  return Status::OK();
}

void LaneClient::CountBytes(const Range& range, uint64_t bytes) {
  state_->counters.sst_bytes += bytes;
  const uint64_t room = range.estimated_bytes - planned_done_;
  const uint64_t counted = std::min(bytes, room);
  planned_done_ += counted;
  state_->counters.planned_bytes_done += counted;
}

}  // namespace sstferry
