#include "pipeline/pull/lane_channel.h"

#include "format/end_state.h"

namespace sstferry {

using rocksdb::Status;

Status LaneChannel::Open() {
  const Status status = state_->open_lane(lane_, &channel_);
  if (!status.ok()) {
    channel_ = nullptr;
    return As(FailureToOpen(status), status);
  }
  return status;
}

void LaneChannel::Leave(bool close) {
  if (channel_ == nullptr) {
    return;
  }
  state_->counters.wire_bytes +=
      channel_->bytes_received() + channel_->bytes_sent();
  if (close) {
    channel_->Close();
    channel_ = nullptr;
  }
}

Status LaneChannel::Sent(const Status& status) {
  if (!status.ok()) {
    // A channel that this side has closed also counts as lost, unless the pull
    // is ending.
    const EndState state = EndStateOf(status);
    const bool lost =
        state == EndState::kDeadPeer ||
        (state == EndState::kCancelled && state_->stop != nullptr &&
         !state_->stop->stopped());
    // A damaged frame length may cause a stall inside a frame, so such a stall
    // is not final.
    const bool too_slow =
        state == EndState::kTooSlow && channel_->can_receive();
    failure_ = lost ? LaneFailure::kLost
               : too_slow || state == EndState::kCancelled
                   ? LaneFailure::kFinal
                   : LaneFailure::kDamaged;
  }
  return status;
}

Status LaneChannel::Expect(const Frame& frame, FrameType type) {
  const Status status = channel_->ExpectType(frame, type);
  if (frame.type != FrameType::kEnd) {
    return Damaged(status);
  }
  const EndState state = EndStateOf(status);
  return As(state == EndState::kCancelled || state == EndState::kSnapshotGone
                ? LaneFailure::kLost
            : state == EndState::kDeadPeer ? LaneFailure::kTold
                                           : LaneFailure::kFinal,
            status);
}

}  // namespace sstferry
