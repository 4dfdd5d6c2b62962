#include "pipeline/source/lane_session.h"

#include "format/limits.h"
#include "pipeline/blocked_time.h"
#include "pipeline/interval_reader.h"
#include "pipeline/source/file_carrier.h"
#include "pipeline/source/read_failure.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

// A page of EntriesReply: far below kMaxPayloadBytes even with one key of the
// maximum size on top.
constexpr size_t kEntriesPageBytes = 256u << 10;
// Requests of one lane for ranges and digests, far above what a target needs.
// A verify asks for the other side's ranges.
constexpr uint64_t kRequestsPerRange = 16;
constexpr uint64_t kMoreRequests = 1024;

// What a channel said of a send. A target that is gone is found sooner, on the
// control connection.
Status Sent(const Transfer& transfer, const Status& status) {
  return status.IsTimedOut()
             ? MakeStatus(EndState::kTooSlow,
                          "the target took no byte for " +
                              std::to_string(
                                  transfer.send_limit().idle.count()) +
                              " ms")
             : status;
}

// Frames a chunk's bytes onto a lane and digests them on the way.
class LaneSink : public ChunkSink {
 public:
  LaneSink(Transfer* transfer, Channel* channel, StageClock* clock,
           LaneCompressor* compressor)
      : transfer_(transfer),
        channel_(channel),
        clock_(clock),
        compressor_(compressor) {}

  Status Begin(const ChunkBegin& begin) override {
    digest_ = ChunkDigest();
    bytes_ = 0;
    compressor_->BeginChunk();
    StageScope scope(clock_, Stage::kSendWait);
    return Sent(*transfer_,
                channel_->SendMessage(FrameType::kChunkBegin, begin,
                                      transfer_->send_limit()));
  }

  Status Append(const Slice& data) override {
    Slice rest = data;
    while (!rest.empty()) {
      const size_t bytes = std::min<size_t>(rest.size(), kMaxPayloadBytes);
      const Status status = SendPiece(Slice(rest.data(), bytes));
      if (!status.ok()) {
        return status;
      }
      rest.remove_prefix(bytes);
    }
    return Status::OK();
  }

  Status End(ChunkEnd* end) override {
    if (end->file_bytes != bytes_) {
      return MakeStatus(EndState::kInternal,
                        "send chunk: expected " +
                            std::to_string(end->file_bytes) +
                            " bytes, sent " + std::to_string(bytes_));
    }
    const Digest128 digest = digest_.Finish();
    end->digest = digest;
    chain_.AddChunk(digest);
    StageScope scope(clock_, Stage::kSendWait);
    return Sent(*transfer_,
                channel_->SendMessage(FrameType::kChunkEnd, *end,
                                      transfer_->send_limit()));
  }

  Digest128 chain() const { return chain_.Finish(); }

 private:
  Status SendPiece(const Slice& piece) {
    Slice payload = piece;
    const bool compressed = transfer_->compressing() &&
                            compressor_->Compress(piece, &payload);
    StageScope scope(clock_, Stage::kSendWait);
    Status status = transfer_->rate_bucket()->Take(piece.size());
    uint64_t frame_digest = 0;
    if (status.ok()) {
      status = SendData(payload, compressed ? kFrameFlagZstd : uint16_t{0},
                        &frame_digest);
    }
    if (status.ok()) {
      digest_.AddFrame(frame_digest);
      bytes_ += piece.size();
      transfer_->counters()->sst_bytes += piece.size();
    }
    return status;
  }

  // What may have to wait for the link: the other rate limit counts bytes
  // before compression, so that waiting for it says nothing of the link.
  Status SendData(const Slice& payload, uint16_t flags, uint64_t* digest) {
    BlockedScope blocked(&transfer_->counters()->send_blocked_micros);
    const Status status =
        transfer_->wire_bucket()->Take(payload.size() + kFrameHeaderBytes);
    return status.ok()
               ? Sent(*transfer_,
                      channel_->SendParts(FrameType::kChunkData, &payload, 1,
                                          transfer_->send_limit(), digest,
                                          flags))
               : status;
  }

  Transfer* const transfer_;
  Channel* const channel_;
  StageClock* const clock_;
  LaneCompressor* const compressor_;
  ChunkDigest digest_;
  RangeDigest chain_;
  uint64_t bytes_ = 0;
};

}  // namespace

LaneSession::LaneSession(std::shared_ptr<Transfer> transfer, Channel* channel,
                         uint32_t lane)
    : transfer_(std::move(transfer)),
      channel_(channel),
      lane_(lane),
      clock_(&transfer_->counters()->stages, Stage::kIdle),
      compressor_(transfer_->compression_level()) {}

void LaneSession::Run() {
  const Status attached = transfer_->Attach(lane_, channel_);
  if (!attached.ok()) {
    SendEnd(channel_, attached, "lane " + std::to_string(lane_));
    return;
  }
  const Status status = Serve();
  // A target that fails closes its lanes first and then says why on the
  // control connection: its words count, not the closed lane.
  const EndState state = EndStateOf(status);
  const bool lost = lost_ || state == EndState::kDeadPeer ||
                    state == EndState::kCancelled;
  if (state == EndState::kDeadPeer && !transfer_->may_keep()) {
    transfer_->AwaitEnd(transfer_->peer_timeout());
  }
  // One that may come back is no reason to end; nor is it that nobody reads
  // while nobody is connected.
  const bool may_return =
      transfer_->may_keep() &&
      (lost || (state == EndState::kTooSlow && !transfer_->has_control()));
  transfer_->counters()->wire_bytes += channel_->bytes_sent();
  const bool replaced = !transfer_->Detach(lane_, channel_);
  if (!status.ok() && !may_return && !replaced && !transfer_->ended()) {
    const std::string where = "source lane " + std::to_string(lane_);
    SendEnd(channel_, status, where);
    transfer_->Fail(status, where);
  }
}

Status LaneSession::Serve() {
  while (true) {
    clock_.Enter(Stage::kIdle);
    Frame frame;
    Status status = channel_->Receive(WaitLimit::Forever(), &frame);
    if (!status.ok()) {
      lost_ = true;
      return status;
    }
    clock_.Enter(Stage::kReadBuild);
    switch (frame.type) {
      case FrameType::kRangeRequest: {
        RangeRequest request;
        status = request.DecodeFrom(frame.payload);
        status = status.ok() ? CountRequest() : status;
        status = status.ok() ? SendRange(request) : status;
        break;
      }
      case FrameType::kDigestRequest: {
        DigestRequest request;
        status = request.DecodeFrom(frame.payload);
        status = status.ok() ? CountRequest() : status;
        status = status.ok() ? SendDigest(request) : status;
        break;
      }
      case FrameType::kEntriesRequest: {
        EntriesRequest request;
        status = request.DecodeFrom(frame.payload);
        status = status.ok() ? SendEntries(request) : status;
        break;
      }
      case FrameType::kEnd: {
        // A lane that is no longer needed; the control connection knows why.
        End end;
        return end.DecodeFrom(frame.payload);
      }
      default:
        status = MakeStatus(
            EndState::kCorrupt,
            std::string("lane: expected a request, found frame ") +
                FrameTypeName(frame.type));
    }
    if (!status.ok()) {
      return status;
    }
  }
}

Status LaneSession::CountRequest() {
  const uint64_t allowed =
      kMoreRequests + (transfer_->request().purpose == Purpose::kVerify
                           ? kMaxRanges
                           : kRequestsPerRange * transfer_->ranges().size());
  return ++requests_ <= allowed
             ? Status::OK()
             : MakeStatus(EndState::kDenied,
                          "lane: expected at most " + std::to_string(allowed) +
                              " requests for ranges and digests");
}

Status LaneSession::FindFamily(uint32_t index, const TransferFamily** family) {
  if (index >= transfer_->families().size()) {
    return MakeStatus(EndState::kCorrupt,
                      "lane: expected a family below " +
                          std::to_string(transfer_->families().size()) +
                          ", found " + std::to_string(index));
  }
  *family = &transfer_->families()[index];
  return Status::OK();
}

Status LaneSession::SendRange(const RangeRequest& request) {
  if (request.range_id >= transfer_->ranges().size()) {
    return MakeStatus(EndState::kCorrupt,
                      "lane: expected a range below " +
                          std::to_string(transfer_->ranges().size()) +
                          ", found " + std::to_string(request.range_id));
  }
  const Range& range = transfer_->ranges()[request.range_id];
  LaneSink sink(transfer_.get(), channel_, &clock_, &compressor_);
  RangeEnd end;
  const Status status = transfer_->carried(range.id) != nullptr
                            ? CarryRange(range, request, &sink, &end)
                            : BuildRange(range, request, &sink, &end);
  if (!status.ok()) {
    return status;
  }
  end.chain = sink.chain();
  transfer_->RecordRange(end, request.held);
  StageScope scope(&clock_, Stage::kSendWait);
  return Sent(*transfer_, channel_->SendMessage(FrameType::kRangeEnd, end,
                                                transfer_->send_limit()));
}

std::function<void(uint64_t, uint64_t)> LaneSession::Counter() {
  TransferCounters* counters = transfer_->counters();
  return [counters](uint64_t entries, uint64_t bytes) {
    counters->entries.fetch_add(entries, std::memory_order_relaxed);
    counters->key_value_bytes.fetch_add(bytes, std::memory_order_relaxed);
  };
}

Status LaneSession::BuildRange(const Range& range, const RangeRequest& request,
                               ChunkSink* sink, RangeEnd* end) {
  const TransferFamily& family = transfer_->families()[range.family];
  ChunkBuilderOptions options;
  options.chunk_bytes = transfer_->request().chunk_bytes;
  options.readahead_bytes = family.readahead_bytes;
  options.target_takes_entities = transfer_->target_takes_entities();
  options.cancelled = [this] { return transfer_->ended(); };
  options.on_progress = Counter();
  ChunkBuilder builder(transfer_->db(), family.handle, family.chunk_options,
                       options, sink);
  return builder.Build(range, request, end);
}

Status LaneSession::CarryRange(const Range& range, const RangeRequest& request,
                               ChunkSink* sink, RangeEnd* end) {
  const CarriedFile& file = *transfer_->carried(range.id);
  if (request.after.has_value() || request.held.chunks != 0) {
    return MakeStatus(EndState::kRefused,
                      "lane: range " + std::to_string(range.id) +
                          " is one carried file and has no second chunk");
  }
  FileCarrierOptions options;
  options.target_takes_entities = transfer_->target_takes_entities();
  options.cancelled = [this] { return transfer_->ended(); };
  options.on_progress = Counter();
  FileCarrier carrier(options, sink, &carry_buffer_);
  return carrier.Carry(range, file, end);
}

Status LaneSession::SendDigest(const DigestRequest& request) {
  const TransferFamily* family = nullptr;
  Status status = FindFamily(request.family, &family);
  DigestReply reply;
  if (status.ok()) {
    status = ReadFailure(
        DigestInterval(transfer_->db(), family->handle, request.interval,
                       family->readahead_bytes,
                       [this] { return transfer_->ended(); }, &reply),
        "digest");
  }
  return status.ok()
             ? Sent(*transfer_,
                    channel_->SendMessage(FrameType::kDigestReply, reply,
                                          transfer_->send_limit()))
             : status;
}

Status LaneSession::SendEntries(const EntriesRequest& request) {
  const TransferFamily* family = nullptr;
  Status status = FindFamily(request.family, &family);
  EntriesReply reply;
  if (status.ok()) {
    status = ReadFailure(
        ReadEntries(transfer_->db(), family->handle, request,
                    family->readahead_bytes, kEntriesPageBytes, &reply),
        "entries");
  }
  return status.ok()
             ? Sent(*transfer_,
                    channel_->SendMessage(FrameType::kEntriesReply, reply,
                                          transfer_->send_limit()))
             : status;
}

}  // namespace sstferry
