// Receives the requests of a lane in order and sends their answers, on the
// connection that serves the lane.
#pragma once

#include <deque>
#include <string>

#include "pipeline/serve/transfer.h"

namespace sstferry {

// One request of a lane, as received.
struct LaneRequest {
  FrameType type = FrameType::kEnd;
  std::string payload;
};

// One connection of a lane.
//
// Ownership: borrows the transfer and the channel.
// Threads:   the serving thread.
// Errors:    if the connection failed, lost() is true, and the transfer has
//            not failed. kTooSlow: the target is connected but received or
//            acknowledged nothing for too long.
class LaneLink {
 public:
  LaneLink(Transfer* transfer, Channel* channel)
      : transfer_(transfer), channel_(channel) {}
  // Adds the connection's bytes to the transfer's counters.
  ~LaneLink();

  // Returns the next request in the order of arrival. Returns kTooSlow if the
  // target sends nothing for too long and has not acknowledged every chunk: the
  // last chunks may be in sockets, unread. lost() is true if the target sends
  // nothing and has lost its control connection, too.
  [[nodiscard]] rocksdb::Status Receive(LaneRequest* request);
  // Receives the frames that have arrived, without waiting. A lane that sends
  // many chunks for one request calls this between chunks, so that the two
  // sides do not wait for each other to read.
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
  // Sends the end of a chunk; the target acknowledges it.
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
  uint64_t chunks_ = 0;  // number of chunks sent completely
  uint64_t acks_ = 0;    // number of these that were acknowledged
};

}  // namespace sstferry
