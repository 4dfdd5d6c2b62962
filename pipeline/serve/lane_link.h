// The connection that serves a lane: gives its thread requests in order, and
// sends what answers them.
#pragma once

#include <deque>
#include <string>

#include "pipeline/serve/transfer.h"

namespace sstferry {

struct LaneRequest {
  FrameType type = FrameType::kEnd;
  std::string payload;
};

// Ownership: borrows all.
// Threads:   the serving thread.
// Errors:    if the connection failed, lost() is true, and the transfer has not
//   failed. kTooSlow: the target is connected but took or acknowledged nothing
//   for too long.
class LaneLink {
 public:
  LaneLink(Transfer* transfer, Channel* channel)
      : transfer_(transfer), channel_(channel) {}
  // Counts the connection's bytes.
  ~LaneLink();

  // Returns the next request in the order of arrival. kTooSlow if the target
  // says nothing for too long while it has not acknowledged every chunk: the
  // last ones may lie in sockets, unread. lost() if it says nothing, and has
  // lost its control connection, too.
  [[nodiscard]] rocksdb::Status Receive(LaneRequest* request);
  // Takes the frames that have arrived, without waiting. A lane that sends many
  // chunks for one request calls it between them, so that both sides do not
  // wait for each other to read.
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
  // Sends the end of a chunk, which the target acknowledges.
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
  uint64_t chunks_ = 0;  // completely sent
  uint64_t acks_ = 0;    // of these
};

}  // namespace sstferry
