#include "pipeline/serve/lane_sink.h"

#include <algorithm>

#include "format/limits.h"
#include "pipeline/base/blocked_time.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

LaneSink::LaneSink(Transfer* transfer, LaneLink* link, StageClock* clock,
                   LaneCompressor* compressor, OnPartEnd on_part_end)
    : transfer_(transfer),
      link_(link),
      clock_(clock),
      compressor_(compressor),
      on_part_end_(std::move(on_part_end)) {
  if (!transfer_->is_clone()) {
    transfer_->pace()->shares()->JoinLane();
  }
  link_->set_on_ack(
      [this](const ChunkAck& ack) { return window_.Acknowledge(ack); });
}

LaneSink::~LaneSink() {
  if (!transfer_->is_clone()) {
    transfer_->pace()->shares()->LeaveLane();
  }
}

Status LaneSink::Begin(const ChunkBegin& begin) {
  window_.BeginChunk(begin);
  compressor_->BeginChunk();
  return Deliver();
}

Status LaneSink::Append(const Slice& data) {
  Slice rest = data;
  while (!rest.empty()) {
    size_t bytes = std::min<size_t>(rest.size(), kMaxPayloadBytes);
    if (!superseded_ && !window_.sends_unit()) {
      window_.SetMost(transfer_->pace()->shares()->lane_bytes());
      bytes = std::min<size_t>(bytes, window_.most() / 4);
    }
    if (window_.sends_unit()) {
      bytes = window_.chunk().FrameBytes(bytes);
    }
    const Status status = AppendPiece(Slice(rest.data(), bytes));
    if (!status.ok()) {
      return status;
    }
    rest.remove_prefix(bytes);
  }
  return Status::OK();
}

Status LaneSink::AppendPiece(const Slice& piece) {
  if (superseded_) {
    // Data of a writer that is destroyed early.
    return MakeStatus(EndState::kCancelled, "lane: the chunk was given up");
  }
  if (window_.sends_unit()) {
    return SendPiece(piece, &window_.chunk().frames);
  }
  Status status = TakeAcks(/*wait=*/false);
  while (status.ok() && window_.chunk().kept == nullptr &&
         !window_.HasRoom(piece.size())) {
    status = TakeAcks(/*wait=*/true);
  }
  if (status.ok()) {
    window_.Add(piece);
    status = Deliver();
    window_.EndLoan();
  }
  return status;
}

Status LaneSink::End(const ChunkEnd& end) {
  const LaneWindow::Chunk& chunk = window_.chunk();
  const uint64_t bytes =
      chunk.rebuilt() ? chunk.bytes : chunk.frames.bytes();
  if (end.file_bytes != bytes) {
    return MakeStatus(EndState::kInternal,
                      "send chunk: expected " +
                          std::to_string(end.file_bytes) +
                          " bytes, found " + std::to_string(bytes));
  }
  std::optional<std::string> after;
  if (chunk.begin.kind != PartKind::kDelta) {
    after = end.largest;
  }
  window_.EndChunk(end, std::move(after));
  LogFinished(end);
  return Deliver();
}

// For measurements: from here on a chunk only has to be sent and ingested.
void LaneSink::LogFinished(const ChunkEnd& end) const {
  if (transfer_->log()) {
    transfer_->log()(LogLevel::kDebug,
                     "finished chunk " + std::to_string(end.ordinal) +
                         " of part " + std::to_string(end.part_id) +
                         " of transfer " + ToHex(transfer_->id()) + ", " +
                         std::to_string(end.file_bytes) + " bytes");
  }
}

Status LaneSink::EndPart() {
  building_ = false;
  window_.EndPart();
  return Deliver();
}

Status LaneSink::GoOn() {
  building_ = false;
  Status status = Recover();
  if (status.ok()) {
    status = Deliver();
  }
  return TakeSuperseded() ? Status::OK() : status;
}

Status LaneSink::Deliver() {
  while (true) {
    if (!link_->lost()) {
      const Status status = SendPending();
      if (status.ok() || !link_->lost()) {
        return status;
      }
    }
    if (window_.sends_unit()) {
      return MakeStatus(EndState::kDeadPeer, "lane: the connection was lost");
    }
    const Status status = Recover();
    if (!status.ok()) {
      return status;
    }
  }
}

Status LaneSink::SendPending() {
  while (LaneWindow::Part* const part = window_.NextToSend()) {
    Status status = part->asked ? Status::OK() : AwaitRequest(part);
    while (status.ok() && part->sent_chunks < part->chunks.size()) {
      LaneWindow::Chunk& chunk = part->chunks[part->sent_chunks];
      status = SendChunk(part, &chunk);
      if (!chunk.end) {
        return status;  // more of it is to come
      }
    }
    if (status.ok() && part->ended) {
      status = SendPartEnd(part);
    }
    if (!status.ok() || !part->ended) {
      return status;
    }
  }
  return Status::OK();
}

// The target has received everything that it requested on this connection. Only
// its next request says whether it wants the next part: it may have given that
// one to another of its lanes.
Status LaneSink::AwaitRequest(LaneWindow::Part* part) {
  StageScope scope(clock_, Stage::kIdle);
  LaneRequest next;
  Status status = link_->Receive(&next);
  if (status.ok() && next.type == FrameType::kPartRequest) {
    PartRequest request;
    status = request.DecodeFrom(next.payload);
    part->asked = status.ok() && request == part->request;
  }
  if (status.ok() && !part->asked) {
    window_.ForgetUnasked();
    link_->PutBack(std::move(next));
    return Superseded();
  }
  return status;
}

Status LaneSink::SendChunk(LaneWindow::Part* part,
                           LaneWindow::Chunk* chunk) {
  Status status;
  if (!chunk->begun) {
    StageScope scope(clock_, Stage::kSendWait);
    chunk->begin.first_byte = chunk->frames.bytes();
    status = link_->Send(FrameType::kChunkBegin, chunk->begin);
    chunk->begun = status.ok();
  }
  while (status.ok() && chunk->frames.bytes() < chunk->bytes) {
    Slice piece;
    status = window_.Get(*chunk, chunk->frames.bytes(), &piece);
    if (status.ok()) {
      status = SendPiece(piece, &chunk->frames);
    }
  }
  if (!status.ok() || !chunk->end) {
    return status;
  }
  StageScope scope(clock_, Stage::kSendWait);
  ChunkEnd& end = *chunk->end;
  end.digest = chunk->frames.Digest();
  status = link_->SendChunkEnd(end);
  if (status.ok()) {
    part->sent_chunks++;
    part->chain.AddChunk(end.digest);
    part->totals.chunks++;
    part->totals.entries += end.entries;
    part->totals.key_value_bytes += end.key_bytes + end.value_bytes;
    part->totals.sst_bytes += end.file_bytes;
  }
  return status;
}

Status LaneSink::SendPiece(const Slice& piece, FrameList* frames) {
  Slice payload = piece;
  const bool compressed = transfer_->pace()->compressing() &&
                          compressor_->Compress(piece, &payload);
  StageScope scope(clock_, Stage::kSendWait);
  Status status = transfer_->pace()->rate_bucket()->Take(piece.size());
  uint64_t digest = 0;
  if (status.ok()) {
    // Only this part waits for the link: the rate limit above counts bytes
    // before compression, so waiting for it tells nothing about the link.
    BlockedScope blocked(&transfer_->counters()->send_blocked_micros);
    status =
        transfer_->pace()->TakeFromAll(payload.size() + kFrameHeaderBytes);
    if (status.ok()) {
      status = link_->Send(FrameType::kChunkData, payload,
                           compressed ? kFrameFlagZstd : uint16_t{0}, &digest);
    }
  }
  if (status.ok()) {
    frames->Add(digest, piece.size());
    transfer_->counters()->sst_bytes += piece.size();
  }
  return status;
}

Status LaneSink::SendPartEnd(LaneWindow::Part* part) {
  PartEnd end;
  end.part_id = part->request.part_id;
  end.totals = part->totals;
  end.chain = part->chain.Finish();
  on_part_end_(end, part->request.received);
  StageScope scope(clock_, Stage::kSendWait);
  const Status status = link_->Send(FrameType::kPartEnd, end);
  part->end_sent = status.ok();
  return status;
}

Status LaneSink::TakeAcks(bool wait) {
  StageScope scope(clock_, Stage::kSendWait);
  const Status status = link_->TakeArrived(wait);
  if (status.ok() || !link_->lost()) {
    return status;
  }
  return Deliver();
}

// Waits until the target says on another connection how far it came.
Status LaneSink::Recover() {
  StageScope scope(clock_, Stage::kIdle);
  while (true) {
    Status status = link_->AwaitNext();
    if (!status.ok()) {
      return status;  // nobody comes any more
    }
    status = Reconcile();
    if (status.ok() || superseded_ || !link_->lost()) {
      return status;
    }
  }
}

Status LaneSink::Superseded() {
  superseded_ = true;
  return MakeStatus(EndState::kCancelled,
                    "lane: the target asks for another chunk");
}

Status LaneSink::Reconcile() {
  LaneRequest first;
  Status status = link_->Receive(&first);
  if (!status.ok()) {
    return status;
  }
  bool found = false;
  if (first.type == FrameType::kPartRequest) {
    PartRequest request;
    status = request.DecodeFrom(first.payload);
    found = status.ok() && window_.Rewind(request, building_) ==
                               LaneWindow::Found::kAll;
  } else {
    window_.Clear();
  }
  if (status.ok() && !found) {
    link_->PutBack(std::move(first));
    return Superseded();
  }
  return status;
}

}  // namespace sstferry
