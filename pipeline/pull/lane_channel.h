// Uses the connection of one lane. Classifies each failure by how the lane may
// react to it.
#pragma once

#include <cstdint>

#include "pipeline/pull/lane_retry.h"
#include "pipeline/pull/lane_shared.h"
#include "pipeline/wire/channel.h"

namespace sstferry {

// Opens and uses the connection of one lane, and classifies its failures.
//
// Ownership: borrows its arguments. Threads: the lane's.
class LaneChannel {
 public:
  LaneChannel(LaneShared* state, uint32_t lane) : state_(state), lane_(lane) {}

  // Opens the lane's connection, or a new one after a failure.
  [[nodiscard]] rocksdb::Status Open();
  // Adds the connection's byte counts to the counters of the pull. If `close`
  // is true, also closes the connection.
  void Leave(bool close);

  // Returns how the lane may react to the latest failure: reconnect, request
  // again, or fail.
  LaneFailure failure() const { return failure_; }
  // Sent(), Damaged() and Final() return `status`. If it is a failure, they
  // also record how the lane must react to it. Call Sent() if sending or
  // receiving failed: the reaction depends on `status` and on the state of the
  // connection. Call Damaged() if the lane must request damaged bytes again.
  [[nodiscard]] rocksdb::Status Sent(const rocksdb::Status& status);
  [[nodiscard]] rocksdb::Status Damaged(const rocksdb::Status& status) {
    return As(LaneFailure::kDamaged, status);
  }
  // Call Final() if the lane must fail: because of a failure of this side, or
  // because an intact frame has wrong contents.
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
  // Checks that a frame has the type `type`. An End frame makes the lane fail,
  // unless the source says in it that it is restarting or that a new request
  // may succeed.
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
