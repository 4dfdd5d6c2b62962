// The connection of one lane: what goes over it has the source's range numbers,
// and for each failure it says what the lane can do about it.
#pragma once

#include <cstdint>

#include "pipeline/target/lane/lane_retry.h"
#include "pipeline/target/lane/lane_source.h"
#include "pipeline/target/lane/pull_state.h"
#include "pipeline/wire/channel.h"

namespace sstferry {

// Ownership: borrows all it gets. Threads: the lane's.
class LaneChannel {
 public:
  LaneChannel(PullState* state, const LaneSource* source, uint32_t lane)
      : state_(state), source_(source), lane_(lane) {}

  // Opens it anew.
  [[nodiscard]] rocksdb::Status Open();
  // Counts its bytes; `close`: it is of no use any more.
  void Leave(bool close);
  Channel* get() const { return channel_; }

  // The failure at hand. Each of these takes a status, and sets it to what the
  // name says: of a connection that was lost, or whose bytes or words cannot be
  // right;
  LaneFailure failure() const { return failure_; }
  [[nodiscard]] rocksdb::Status Sent(const rocksdb::Status& status);
  [[nodiscard]] rocksdb::Status Damaged(const rocksdb::Status& status) {
    return As(LaneFailure::kDamaged, status);
  }
  // of whole frames that say what is not so;
  [[nodiscard]] rocksdb::Status Wrong(const rocksdb::Status& status) {
    return As(LaneFailure::kWrong, status);
  }
  // of this side.
  [[nodiscard]] rocksdb::Status Here(const rocksdb::Status& status) {
    return As(LaneFailure::kHere, status);
  }

  // Sends a message that names a range of the plan.
  template <typename Message>
  [[nodiscard]] rocksdb::Status Send(FrameType type, Message message) {
    message.range_id = TheirId(message.range_id);
    return Sent(
        channel_->SendMessage(type, message, WaitLimit{state_->chunk_time}));
  }
  // The same of a message that came.
  template <typename Message>
  [[nodiscard]] rocksdb::Status Take(const rocksdb::Slice& payload,
                                     Message* message) {
    rocksdb::Status status = message->DecodeFrom(payload);
    if (status.ok()) {
      status = OurId(&message->range_id);
    }
    return Damaged(status);
  }
  [[nodiscard]] rocksdb::Status Receive(Frame* frame, Clock::time_point until) {
    return Sent(source_->guard->Receive(channel_, frame, until));
  }
  [[nodiscard]] rocksdb::Status ReceiveHeader(FrameHeader* header,
                                              Clock::time_point until) {
    return Sent(source_->guard->ReceiveHeader(channel_, header, until));
  }
  [[nodiscard]] rocksdb::Status ReceivePayload(char* into, Frame* frame) {
    return Sent(source_->guard->ReceivePayload(channel_, into, frame));
  }
  // The source's own End is its last word, but for one that begins again.
  [[nodiscard]] rocksdb::Status Expect(const Frame& frame, FrameType type);

  // Compares a unit that came with what the first source has.
  [[nodiscard]] rocksdb::Status Compare(uint32_t range_id,
                                        const Digest128& content);

 private:
  [[nodiscard]] rocksdb::Status As(LaneFailure failure,
                                   const rocksdb::Status& status) {
    failure_ = failure;
    return status;
  }
  uint32_t TheirId(uint32_t range_id) const;
  // kCorrupt: a range that it was not asked for.
  [[nodiscard]] rocksdb::Status OurId(uint32_t* range_id) const;

  PullState* const state_;
  const LaneSource* const source_;
  const uint32_t lane_;
  Channel* channel_ = nullptr;  // null: to be opened
  LaneFailure failure_ = LaneFailure::kHere;
};

}  // namespace sstferry
