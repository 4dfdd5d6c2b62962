#include "pipeline/serve/lane_link.h"
#include "pipeline/base/duration.h"

#include <algorithm>

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

// Maximum number of requests that are queued while chunks are sent. A target
// never needs more. Further requests remain in the sockets.
constexpr size_t kMaxWaiting = 4;
// Maximum number of frames that are received after one sent chunk.
constexpr int kMaxTaken = 64;

}  // namespace

LaneLink::~LaneLink() {
  transfer_->counters()->wire_bytes += channel_->bytes_sent();
}

Status LaneLink::Failed(const Status& status) {
  if (status.IsTimedOut() && channel_->can_receive()) {
    return MakeStatus(
        EndState::kTooSlow,
        "the target accepted no data for " +
            FormatDuration(transfer_->send_limit().idle));
  }
  lost_ = true;
  return status;
}

Status LaneLink::Send(FrameType type, const Slice& payload, uint16_t flags,
                      uint64_t* digest) {
  const Status status = channel_->SendParts(
      type, &payload, 1, transfer_->send_limit(), digest, flags);
  return status.ok() ? status : Failed(status);
}

Status LaneLink::SendChunkEnd(const ChunkEnd& end) {
  chunks_++;
  return Send(FrameType::kChunkEnd, end);
}

// Receives a frame. Sets *nothing if no frame began within `header_limit`. If a
// header arrived, its payload must follow soon.
Status LaneLink::ReceiveFrame(const WaitLimit& header_limit, bool* nothing,
                              Frame* frame) {
  *nothing = false;
  FrameHeader header;
  Status status = channel_->ReceiveHeader(header_limit, &header);
  if (status.IsTimedOut() && channel_->can_receive()) {
    *nothing = true;
    return Status::OK();
  }
  if (status.ok()) {
    // The target sends a whole frame at once. If the rest of the payload does
    // not arrive, the length in the header is damaged.
    WaitLimit limit = transfer_->send_limit();
    limit.progress = nullptr;  // counts bytes of other lanes
    if (transfer_->peer_timeout().count() > 0) {
      limit.idle = std::min(limit.idle, transfer_->peer_timeout());
    }
    status = channel_->ReceivePayload(limit, nullptr, frame);
  }
  return status.ok() ? status : Failed(status);
}

Status LaneLink::TakeAck(const Slice& payload) {
  ChunkAck ack;
  RETURN_IF_ERROR(Decode(payload, &ack));
  if (++acks_ > chunks_) {
    return MakeStatus(EndState::kDenied,
                      "lane: expected at most " + std::to_string(chunks_) +
                          " acknowledgements, one for each chunk, found one "
                          "more");
  }
  transfer_->counters()->acks++;
  return Status::OK();
}

Status LaneLink::Take(const Frame& frame) {
  if (frame.type == FrameType::kChunkAck) {
    return TakeAck(frame.payload);
  }
  requests_.push_back({frame.type, frame.payload.ToString()});
  return Status::OK();
}

Status LaneLink::Receive(LaneRequest* request) {
  while (requests_.empty()) {
    const bool owes_ack = acks_ < chunks_;
    const uint64_t acks = transfer_->counters()->acks;
    Frame frame;
    bool nothing = false;
    const std::chrono::milliseconds silent = transfer_->peer_timeout();
    Status status = ReceiveFrame(owes_ack ? transfer_->send_limit()
                                 : silent.count() > 0
                                     ? WaitLimit{silent}
                                     : WaitLimit::Forever(),
                                 &nothing, &frame);
    if (status.ok() && !nothing) {
      status = Take(frame);
    } else if (status.ok() && !transfer_->has_control()) {
      lost_ = true;
      status = MakeStatus(EndState::kDeadPeer,
                          "lane: the target's control connection is closed");
    } else if (status.ok() && owes_ack &&
               transfer_->counters()->acks == acks) {
      // With a rate limit, this lane may only have waited for the other lanes.
      // Here, the target acknowledged no chunk on any lane.
      status = MakeStatus(
          EndState::kTooSlow,
          "the target acknowledged no chunk for " +
              FormatDuration(transfer_->send_limit().idle));
    }
    RETURN_IF_ERROR(status);
  }
  *request = std::move(requests_.front());
  requests_.pop_front();
  return Status::OK();
}

Status LaneLink::TakeArrived() {
  for (int taken = 0; taken < kMaxTaken && requests_.size() < kMaxWaiting;
       ++taken) {
    Frame frame;
    bool nothing = false;
    const Status received =
        ReceiveFrame({std::chrono::milliseconds(0)}, &nothing, &frame);
    if (nothing) {
      return Status::OK();
    }
    RETURN_IF_ERROR(received);
    RETURN_IF_ERROR(Take(frame));
  }
  return Status::OK();
}

}  // namespace sstferry
