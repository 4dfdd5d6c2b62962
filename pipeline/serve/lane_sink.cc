#include "pipeline/serve/lane_sink.h"

#include <algorithm>
#include <utility>

#include "format/limits.h"
#include "pipeline/base/blocked_time.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

LaneSink::LaneSink(Transfer* transfer, LaneLink* link, StageClock* clock,
                   HoldBack::Worker* worker, LaneCompressor* compressor, OnPartEnd on_part_end)
    : transfer_(transfer),
      link_(link),
      clock_(clock),
      worker_(worker),
      compressor_(compressor),
      on_part_end_(std::move(on_part_end)) {}

void LaneSink::BeginPart(const PartRequest& request) {
  request_ = request;
  totals_ = Totals();
  chain_ = PartDigest();
}

Status LaneSink::Begin(const ChunkBegin& begin) {
  begin_ = begin;
  bytes_ = begin.first_byte;
  digest_ = ChunkDigest();
  compressor_->BeginChunk();
  StageScope scope(clock_, Stage::kSendWait);
  return link_->Send(FrameType::kChunkBegin, begin);
}

Status LaneSink::Append(const Slice& data) {
  Slice rest = data;
  while (!rest.empty()) {
    const bool careful = begin_.first_byte != 0 &&
                         bytes_ < begin_.first_byte + kCarefulBytes;
    const Slice piece(
        rest.data(),
        std::min<size_t>(rest.size(),
                         careful ? kCarefulFrameBytes : kMaxPayloadBytes));
    RETURN_IF_ERROR(SendPiece(piece));
    rest.remove_prefix(piece.size());
  }
  return Status::OK();
}

Status LaneSink::SendPiece(const Slice& piece) {
  worker_->Pass();
  Slice payload = piece;
  const bool compressed = transfer_->pace()->compressing() &&
                          compressor_->Compress(piece, &payload);
  StageScope scope(clock_, Stage::kSendWait);
  Status status = transfer_->pace()->rate_bucket()->Take(piece.size());
  uint64_t digest = 0;
  if (status.ok()) {
    // Measures only this block. The rate limit above counts bytes before
    // compression, so its wait does not show how fast the network is.
    BlockedScope blocked(&transfer_->counters()->send_blocked_micros);
    status =
        transfer_->pace()->TakeFromAll(payload.size() + kFrameHeaderBytes);
    if (status.ok()) {
      status = link_->Send(FrameType::kChunkData, payload,
                           compressed ? kFrameFlagZstd : uint16_t{0}, &digest);
    }
  }
  if (status.ok()) {
    digest_.AddFrame(digest);
    bytes_ += piece.size();
    transfer_->counters()->sst_bytes += piece.size();
  }
  worker_->Restart();  // waiting for the network is no work
  return status;
}

Status LaneSink::End(const ChunkEnd& end) {
  if (end.file_bytes != bytes_) {
    return MakeStatus(EndState::kInternal,
                      "send chunk: expected " +
                          std::to_string(end.file_bytes) + " bytes, found " +
                          std::to_string(bytes_));
  }
  LogFinished(end);
  ChunkEnd sent = end;
  sent.digest = digest_.Finish();
  StageScope scope(clock_, Stage::kSendWait);
  RETURN_IF_ERROR(link_->SendChunkEnd(sent));
  chain_.AddChunk(sent.digest);
  totals_.chunks++;
  totals_.entries += end.entries;
  totals_.key_value_bytes += end.key_bytes + end.value_bytes;
  totals_.sst_bytes += end.file_bytes;
  return link_->TakeArrived();
}

// Writes a debug line when the chunk is built and only its end remains to be
// sent. Measurements read this line.
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
  PartEnd end;
  end.part_id = request_.part_id;
  end.totals = totals_;
  end.chain = chain_.Finish();
  on_part_end_(end, request_.received);
  StageScope scope(clock_, Stage::kSendWait);
  return link_->Send(FrameType::kPartEnd, end);
}

}  // namespace sstferry
