#include "pipeline/source/lane_sink.h"

#include <algorithm>

#include "format/limits.h"
#include "pipeline/blocked_time.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

Status LaneSink::Begin(const ChunkBegin& begin) {
  begin_ = begin;
  begun_ = false;
  end_ = nullptr;
  delivered_ = false;
  // Of a carried chunk that is gone on with, the frames before are kept.
  frames_->Truncate(begin.first_byte == 0 ? 0 : request_.open_frames);
  window_->Clear();
  compressor_->BeginChunk();
  return Deliver();
}

Status LaneSink::Append(const Slice& data) {
  Slice rest = data;
  while (!rest.empty()) {
    const size_t bytes = std::min<size_t>(rest.size(), kMaxPayloadBytes);
    const Status status = AppendPiece(Slice(rest.data(), bytes));
    if (!status.ok()) {
      return status;
    }
    rest.remove_prefix(bytes);
  }
  return Status::OK();
}

Status LaneSink::AppendPiece(const Slice& piece) {
  if (!rebuilt()) {
    return SendPiece(piece);
  }
  Status status = TakeAcks(/*wait=*/false);
  while (status.ok() && !window_->HasRoom(piece.size())) {
    status = TakeAcks(/*wait=*/true);
  }
  if (status.ok()) {
    window_->Add(piece);
    status = Deliver();
  }
  return status;
}

Status LaneSink::End(ChunkEnd* end) {
  const uint64_t bytes = rebuilt() ? window_->end() : frames_->bytes();
  if (end->file_bytes != bytes) {
    return MakeStatus(EndState::kInternal,
                      "send chunk: expected " +
                          std::to_string(end->file_bytes) +
                          " bytes, found " + std::to_string(bytes));
  }
  end_ = end;
  const Status status = Deliver();
  end_ = nullptr;
  last_key_ = end->largest;
  if (status.ok() && !delivered_) {
    chain_.AddChunk(end->digest);
    totals_.chunks++;
    totals_.entries += end->entries;
    totals_.key_value_bytes += end->key_bytes + end->value_bytes;
    totals_.sst_bytes += end->file_bytes;
  }
  return status;
}

Status LaneSink::Deliver() {
  while (true) {
    if (!link_->lost()) {
      const Status status = SendPending();
      if (status.ok() || !rebuilt() || !link_->lost()) {
        return status;
      }
    }
    const Status status = Recover();
    if (!status.ok()) {
      return status;
    }
  }
}

Status LaneSink::SendPending() {
  if (delivered_) {
    return Status::OK();
  }
  Status status;
  if (!begun_) {
    StageScope scope(clock_, Stage::kSendWait);
    begin_.first_byte = frames_->bytes();
    status = link_->Send(FrameType::kChunkBegin, begin_);
    begun_ = status.ok();
  }
  while (status.ok() && rebuilt() && frames_->bytes() < window_->end()) {
    status = SendPiece(window_->At(frames_->bytes()));
  }
  if (status.ok() && end_ != nullptr) {
    StageScope scope(clock_, Stage::kSendWait);
    end_->digest = frames_->Digest();
    status = link_->Send(FrameType::kChunkEnd, *end_);
  }
  return status;
}

Status LaneSink::SendPiece(const Slice& piece) {
  Slice payload = piece;
  const bool compressed =
      transfer_->compressing() && compressor_->Compress(piece, &payload);
  StageScope scope(clock_, Stage::kSendWait);
  Status status = transfer_->rate_bucket()->Take(piece.size());
  uint64_t digest = 0;
  if (status.ok()) {
    // What may have to wait for the link: the rate limit above counts bytes
    // before compression, so that waiting for it says nothing of the link.
    BlockedScope blocked(&transfer_->counters()->send_blocked_micros);
    status =
        transfer_->wire_bucket()->Take(payload.size() + kFrameHeaderBytes);
    if (status.ok()) {
      status = link_->Send(FrameType::kChunkData, payload,
                           compressed ? kFrameFlagZstd : uint16_t{0}, &digest);
    }
  }
  if (status.ok()) {
    frames_->Add(digest, piece.size());
    transfer_->counters()->sst_bytes += piece.size();
  }
  return status;
}

Status LaneSink::TakeAcks(bool wait) {
  StageScope scope(clock_, Stage::kSendWait);
  const Status status = link_->TakeArrived(
      wait, [this](const ChunkAck& ack) { return OnAck(ack); });
  if (status.ok() || !link_->lost()) {
    return status;
  }
  return Deliver();
}

Status LaneSink::OnAck(const ChunkAck& ack) {
  if (ack.range_id != begin_.range_id || ack.ordinal != begin_.ordinal) {
    return Status::OK();  // late, of a chunk before
  }
  if (ack.bytes > frames_->bytes()) {
    return MakeStatus(EndState::kCorrupt,
                      "lane: expected at most " +
                          std::to_string(frames_->bytes()) +
                          " bytes acknowledged, found " +
                          std::to_string(ack.bytes));
  }
  window_->Acknowledge(ack.bytes);
  return Status::OK();
}

// Parks until the target says on another connection how far it has come.
Status LaneSink::Recover() {
  StageScope scope(clock_, Stage::kIdle);
  while (true) {
    Status status = link_->AwaitNext();
    if (!status.ok()) {
      return status;  // nobody comes any more
    }
    LaneRequest next;
    status = link_->Receive(&next);
    bool can_go_on = false;
    if (status.ok() && next.type == FrameType::kRangeRequest) {
      RangeRequest request;
      status = request.DecodeFrom(next.payload);
      can_go_on = status.ok() && GoOnAt(request);
    }
    if (can_go_on) {
      return status;
    }
    if (status.ok()) {
      superseded_ = true;
      link_->PutBack(std::move(next));
      return MakeStatus(EndState::kCancelled,
                        "lane: the target asks for another chunk");
    }
    if (!link_->lost()) {
      return status;
    }
  }
}

bool LaneSink::GoOnAt(const RangeRequest& request) {
  bool can_go_on = false;
  const bool this_range = request.range_id == begin_.range_id;
  if (this_range && request.held.chunks == begin_.ordinal &&
      request.after == (last_key_.has_value() ? last_key_ : request_.after) &&
      request.open_bytes >= window_->begin() &&
      frames_->EndsAt(request.open_frames, request.open_bytes)) {
    frames_->Truncate(request.open_frames);
    begun_ = false;
    can_go_on = true;
  } else if (this_range && end_ != nullptr && request.open_bytes == 0 &&
             request.held.chunks == uint64_t{begin_.ordinal} + 1 &&
             request.after == end_->largest) {
    delivered_ = true;
    can_go_on = true;
  }
  if (can_go_on) {
    BeginAnswer(request);
  }
  return can_go_on;
}

// Totals and chain are of the chunks of one answer.
void LaneSink::BeginAnswer(const RangeRequest& request) {
  request_ = request;
  totals_ = Totals();
  chain_ = RangeDigest();
}

}  // namespace sstferry
