// The connection of a lane as its serving thread sees it: requests in order,
// acknowledgements between them, and a next connection after a lost one.
#pragma once

#include <deque>
#include <functional>
#include <string>

#include "pipeline/source/transfer/lane_port.h"
#include "pipeline/source/transfer/transfer.h"

namespace sstferry {

struct LaneRequest {
  FrameType type = FrameType::kEnd;
  std::string payload;
};

// Ownership: borrows all; the channel in use is the port's.
// Threads:   the serving one.
// Errors:    when the connection failed, lost() is true: that is no failure of
//   the transfer. kTooSlow: the target is there but took or acknowledged
//   nothing for too long.
class LaneLink {
 public:
  LaneLink(Transfer* transfer, LanePort* port, Channel* channel)
      : transfer_(transfer), port_(port), channel_(channel) {}
  ~LaneLink() { CountBytes(); }

  // The next request, in the order they came.
  [[nodiscard]] rocksdb::Status Receive(LaneRequest* request);
  // Makes `request` the next one again.
  void PutBack(LaneRequest request) {
    requests_.push_front(std::move(request));
  }

  // Takes what has arrived; with `wait`, after waiting for it.
  [[nodiscard]] rocksdb::Status TakeArrived(bool wait);
  // Is given acknowledgements as they come.
  using OnAck = std::function<rocksdb::Status(const ChunkAck&)>;
  void set_on_ack(OnAck on_ack) { on_ack_ = std::move(on_ack); }

  template <typename Message>
  [[nodiscard]] rocksdb::Status Send(FrameType type, const Message& message) {
    std::string payload;
    message.EncodeTo(&payload);
    return Send(type, payload, 0, nullptr);
  }
  [[nodiscard]] rocksdb::Status Send(FrameType type,
                                     const rocksdb::Slice& payload,
                                     uint16_t flags, uint64_t* digest);

  [[nodiscard]] rocksdb::Status SendChunkEnd(const ChunkEnd& end) {
    chunks_++;
    return Send(FrameType::kChunkEnd, end);
  }

  // How many there were.
  uint64_t connections() const { return connections_; }
  bool lost() const { return lost_ && !transfer_->ended(); }
  // Parks until the lane has another connection; what was asked on the lost
  // one is forgotten. kCancelled: the transfer has ended.
  [[nodiscard]] rocksdb::Status AwaitNext();
  // Null once nobody came any more.
  Channel* channel() const { return channel_; }

 private:
  [[nodiscard]] rocksdb::Status ReceiveFrame(const WaitLimit& header_limit,
                                             bool* nothing, Frame* frame);
  [[nodiscard]] rocksdb::Status TakeAck(const rocksdb::Slice& payload);
  [[nodiscard]] rocksdb::Status Failed(const rocksdb::Status& status);
  void CountBytes();

  Transfer* const transfer_;
  LanePort* const port_;
  Channel* channel_;
  bool lost_ = false;
  std::deque<LaneRequest> requests_;
  OnAck on_ack_;
  uint64_t acks_ = 0;
  uint64_t chunks_ = 0;  // sent in whole
  uint64_t connections_ = 1;
};

}  // namespace sstferry
