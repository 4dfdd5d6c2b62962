// The connection of one lane. Classifies each failure by how the lane may react
// to it.
#pragma once

#include <cstdint>

#include "pipeline/pull/lane_retry.h"
#include "pipeline/pull/lane_shared.h"
#include "pipeline/wire/channel.h"

namespace sstferry {

// Opens and uses one lane's connection, and classifies its failures.
//
// Ownership: borrows its arguments. Threads: the lane's.
class LaneChannel {
 public:
  LaneChannel(LaneShared* state, uint32_t lane) : state_(state), lane_(lane) {}

  // Opens the lane's connection, or a new one after a failure.
  [[nodiscard]] rocksdb::Status Open();
  // Adds the connection's bytes to the counters. `close`: also closes the
  // connection.
  void Leave(bool close);

  // Returns how the lane may react to the last failure: reconnect, request
  // again, or fail.
  LaneFailure failure() const { return failure_; }
  // Sent(), Damaged() and Final() record how the lane must react to the failure
  // `status`, and return it. Sent(): sending or receiving failed; the reaction
  // follows from `status` and the connection's state. Damaged(): request the
  // damaged bytes again.
  [[nodiscard]] rocksdb::Status Sent(const rocksdb::Status& status);
  [[nodiscard]] rocksdb::Status Damaged(const rocksdb::Status& status) {
    return As(LaneFailure::kDamaged, status);
  }
  // Final(): fail, because of this side's own failure or an intact but wrong
  // frame.
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
  // Checks the type of a frame. An End frame is the source's final answer,
  // unless it says that the source is restarting or that a new request may
  // succeed.
  [[nodiscard]] rocksdb::Status Expect(const Frame& frame, FrameType type);

 private:
  [[nodiscard]] rocksdb::Status As(LaneFailure failure,
                                   const rocksdb::Status& status) {
    failure_ = failure;
    return status;
  }

  LaneShared* const state_;
  const uint32_t lane_;
  Channel* channel_ = nullptr;  // null: not open
  LaneFailure failure_ = LaneFailure::kFinal;
};

}  // namespace sstferry
