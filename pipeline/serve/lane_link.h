// Receives the requests of a lane in order, and sends the answers. A lane is a
// data connection of a transfer.
#pragma once

#include <deque>
#include <string>

#include "pipeline/serve/transfer.h"

namespace sstferry {

// A request of a lane that was received but not decoded.
struct LaneRequest {
  FrameType type = FrameType::kEnd;
  std::string payload;
};

// One connection of a lane.
//
// Ownership: borrows the transfer and the channel.
// Threads:   the thread that serves the lane.
// Errors:    if the connection failed, lost() is true; the transfer has not
//            failed then. Returns kTooSlow if the target is connected but
//            received or acknowledged nothing for too long.
class LaneLink {
 public:
  LaneLink(Transfer* transfer, Channel* channel)
      : transfer_(transfer), channel_(channel) {}
  // Adds the bytes that were sent on this connection to the transfer's
  // counters.
  ~LaneLink();

  // Returns the next request in the order of arrival. Returns kTooSlow if the
  // target sends nothing for too long although it has not acknowledged all
  // chunks; it may not have read the last chunks. If the target sends nothing
  // and has also lost its control connection, lost() is true.
  [[nodiscard]] rocksdb::Status Receive(LaneRequest* request);
  // Receives the frames that have already arrived. A lane that sends many
  // chunks for one request calls this after each chunk. Otherwise both sides
  // could stop reading and wait for each other.
  [[nodiscard]] rocksdb::Status TakeArrived();

  template <typename Message>
  [[nodiscard]] rocksdb::Status Send(FrameType type, const Message& message) {
    std::string payload;
    Encode(message, &payload);
    return Send(type, payload, 0, nullptr);
  }
  [[nodiscard]] rocksdb::Status Send(FrameType type,
                                     const rocksdb::Slice& payload,
                                     uint16_t flags, uint64_t* digest);
  // Tells the target that a chunk is complete. The target acknowledges the
  // chunk.
  [[nodiscard]] rocksdb::Status SendChunkEnd(const ChunkEnd& end);

  bool lost() const { return lost_ && !transfer_->ended(); }
  Channel* channel() const { return channel_; }

 private:
  [[nodiscard]] rocksdb::Status ReceiveFrame(const WaitLimit& header_limit,
                                             bool* nothing, Frame* frame);
  [[nodiscard]] rocksdb::Status Take(const Frame& frame);
  [[nodiscard]] rocksdb::Status TakeAck(const rocksdb::Slice& payload);
  [[nodiscard]] rocksdb::Status Failed(const rocksdb::Status& status);

  Transfer* const transfer_;
  Channel* const channel_;
  bool lost_ = false;
  std::deque<LaneRequest> requests_;
  uint64_t chunks_ = 0;  // chunks sent completely
  uint64_t acks_ = 0;    // chunks that the target has acknowledged
};

}  // namespace sstferry
