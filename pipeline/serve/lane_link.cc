#include "pipeline/serve/lane_link.h"

#include <algorithm>

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

// Maximum of waiting requests while a chunk is sent: more than a target may
// have unanswered.
constexpr size_t kMaxWaiting = 4;
// Maximum of frames taken before the next one is sent.
constexpr int kMaxTaken = 64;
// Acknowledgements: a target owes one per MiB and one per chunk.
constexpr uint64_t kAcksAtOnce = 1024;
constexpr uint64_t kBytesPerAck = 256u << 10;

Status Gone() {
  return MakeStatus(EndState::kCancelled, "lane: the transfer has ended");
}

}  // namespace

Status LaneLink::Failed(const Status& status) {
  if (status.IsTimedOut() && channel_->can_receive()) {
    return MakeStatus(
        EndState::kTooSlow,
        "the target took no byte for " +
            std::to_string(transfer_->send_limit().idle.count()) + " ms");
  }
  lost_ = true;
  return status;
}

Status LaneLink::Send(FrameType type, const Slice& payload, uint16_t flags,
                      uint64_t* digest) {
  if (channel_ == nullptr) {
    return Gone();
  }
  const Status status = channel_->SendParts(
      type, &payload, 1, transfer_->send_limit(), digest, flags);
  return status.ok() ? status : Failed(status);
}

// *nothing: no frame began within `header_limit`. After a header, its payload
// must follow.
Status LaneLink::ReceiveFrame(const WaitLimit& header_limit, bool* nothing,
                              Frame* frame) {
  *nothing = false;
  if (channel_ == nullptr) {
    return Gone();
  }
  FrameHeader header;
  Status status = channel_->ReceiveHeader(header_limit, &header);
  if (status.IsTimedOut() && channel_->can_receive()) {
    *nothing = true;
    return Status::OK();
  }
  if (status.ok()) {
    // Missing bytes were never sent: a length was damaged.
    WaitLimit limit = transfer_->send_limit();
    limit.progress = nullptr;  // of other lanes
    if (transfer_->peer_timeout().count() > 0) {
      limit.idle = std::min(limit.idle, transfer_->peer_timeout());
    }
    status = channel_->ReceivePayload(limit, nullptr, frame);
  }
  return status.ok() ? status : Failed(status);
}

Status LaneLink::TakeAck(const Slice& payload) {
  ChunkAck ack;
  const Status status = ack.DecodeFrom(payload);
  if (!status.ok()) {
    return status;
  }
  const uint64_t allowed =
      kAcksAtOnce + chunks_ +
      transfer_->counters()->sst_bytes / kBytesPerAck;
  if (++acks_ > allowed) {
    return MakeStatus(EndState::kDenied, "lane: expected at most " +
                                             std::to_string(allowed) +
                                             " acknowledgements");
  }
  transfer_->counters()->acks++;
  return on_ack_ ? on_ack_(ack) : status;
}

Status LaneLink::AcknowledgedNothing() const {
  return MakeStatus(
      EndState::kTooSlow,
      "the target acknowledged no byte for " +
          std::to_string(transfer_->send_limit().idle.count()) + " ms");
}

Status LaneLink::Receive(LaneRequest* request,
                         const std::function<bool()>& owes_ack) {
  while (requests_.empty()) {
    const bool owes = owes_ack != nullptr && owes_ack();
    const uint64_t acks = transfer_->counters()->acks;
    Frame frame;
    bool nothing = false;
    Status status =
        ReceiveFrame(owes ? transfer_->send_limit() : WaitLimit::Forever(),
                     &nothing, &frame);
    if (status.ok() && nothing && owes) {
      // Under a cap, lanes wait their turn: the target took something of
      // others.
      if (transfer_->counters()->acks == acks) {
        status = AcknowledgedNothing();
      }
    } else if (status.ok() && !nothing &&
               frame.type == FrameType::kChunkAck) {
      status = TakeAck(frame.payload);
    } else if (status.ok() && !nothing) {
      requests_.push_back({frame.type, frame.payload.ToString()});
    }
    if (!status.ok()) {
      return status;
    }
  }
  *request = std::move(requests_.front());
  requests_.pop_front();
  return Status::OK();
}

Status LaneLink::TakeArrived(bool wait) {
  for (int taken = 0; taken < kMaxTaken; ++taken) {
    const bool block = wait && taken == 0;
    if (!block && requests_.size() >= kMaxWaiting) {
      return Status::OK();
    }
    WaitLimit limit = transfer_->send_limit();
    if (!block) {
      limit = {std::chrono::milliseconds(0)};
    }
    Frame frame;
    bool nothing = false;
    Status status = ReceiveFrame(limit, &nothing, &frame);
    if (status.ok() && nothing) {
      return block ? AcknowledgedNothing() : status;
    }
    if (status.ok() && frame.type == FrameType::kChunkAck) {
      status = TakeAck(frame.payload);
    } else if (status.ok() && requests_.size() >= kMaxWaiting) {
      status = MakeStatus(EndState::kDenied,
                          "lane: expected at most 2 unanswered requests");
    } else if (status.ok()) {
      requests_.push_back({frame.type, frame.payload.ToString()});
    }
    if (!status.ok()) {
      return status;
    }
  }
  return Status::OK();
}

Status LaneLink::AwaitNext() {
  if (channel_ == nullptr) {
    return Gone();
  }
  CountBytes();
  channel_->Close();  // the target may not have noticed damaged bytes
  // If there is no other, none is left: its own thread may have closed it.
  channel_ = port_->AwaitNext(channel_);
  if (channel_ == nullptr) {
    return Gone();
  }
  connections_++;
  lost_ = false;
  requests_.clear();
  return Status::OK();
}

void LaneLink::CountBytes() {
  if (channel_ != nullptr) {
    transfer_->counters()->wire_bytes += channel_->bytes_sent();
  }
}

}  // namespace sstferry
