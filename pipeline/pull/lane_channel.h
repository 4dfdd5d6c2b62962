// The connection of one lane: for each failure it says what the lane can do
// about it.
#pragma once

#include <cstdint>

#include "pipeline/pull/lane_retry.h"
#include "pipeline/pull/lane_shared.h"
#include "pipeline/wire/channel.h"

namespace sstferry {

// Ownership: borrows all it gets. Threads: the lane's.
class LaneChannel {
 public:
  LaneChannel(LaneShared* state, uint32_t lane) : state_(state), lane_(lane) {}

  // Opens it anew.
  [[nodiscard]] rocksdb::Status Open();
  // Counts its bytes; `close`: it is of no use any more.
  void Leave(bool close);

  // The failure at hand. Each of these takes a status, and sets it to what the
  // name says: of a connection that was lost, or whose bytes or words cannot be
  // right;
  LaneFailure failure() const { return failure_; }
  [[nodiscard]] rocksdb::Status Sent(const rocksdb::Status& status);
  [[nodiscard]] rocksdb::Status Damaged(const rocksdb::Status& status) {
    return As(LaneFailure::kDamaged, status);
  }
  // of this side, or of whole frames that say what is not so.
  [[nodiscard]] rocksdb::Status Final(const rocksdb::Status& status) {
    return As(LaneFailure::kFinal, status);
  }

  template <typename Message>
  [[nodiscard]] rocksdb::Status Send(FrameType type, const Message& message) {
    return Sent(
        channel_->SendMessage(type, message, WaitLimit{state_->chunk_time}));
  }
  [[nodiscard]] rocksdb::Status Receive(Frame* frame, Clock::time_point until) {
    return Sent(state_->guard->Receive(channel_, frame, until));
  }
  [[nodiscard]] rocksdb::Status ReceiveHeader(FrameHeader* header,
                                              Clock::time_point until) {
    return Sent(state_->guard->ReceiveHeader(channel_, header, until));
  }
  [[nodiscard]] rocksdb::Status ReceivePayload(char* into, Frame* frame) {
    return Sent(state_->guard->ReceivePayload(channel_, into, frame));
  }
  // The source's own End is its last word, but for one that begins again.
  [[nodiscard]] rocksdb::Status Expect(const Frame& frame, FrameType type);

 private:
  [[nodiscard]] rocksdb::Status As(LaneFailure failure,
                                   const rocksdb::Status& status) {
    failure_ = failure;
    return status;
  }

  LaneShared* const state_;
  const uint32_t lane_;
  Channel* channel_ = nullptr;  // null: to be opened
  LaneFailure failure_ = LaneFailure::kFinal;
};

}  // namespace sstferry
