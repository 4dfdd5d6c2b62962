// Gives a lane's serving thread requests in order, acknowledgements between
// them, and the next connection after a lost one.
#pragma once

#include <deque>
#include <functional>
#include <string>

#include "pipeline/serve/lane_port.h"
#include "pipeline/serve/transfer.h"

namespace sstferry {

struct LaneRequest {
  FrameType type = FrameType::kEnd;
  std::string payload;
};

// Ownership: borrows all; the port owns the channel in use.
// Threads:   the serving thread.
// Errors:    if the connection failed, lost() is true, and the transfer has not
//   failed. kTooSlow: the target is connected but took or acknowledged nothing
//   for too long.
class LaneLink {
 public:
  LaneLink(Transfer* transfer, LanePort* port, Channel* channel)
      : transfer_(transfer), port_(port), channel_(channel) {}
  ~LaneLink() { CountBytes(); }

  // Returns the next request in the order of arrival. kTooSlow if the target
  // says nothing for too long while it owes an acknowledgement (null: it owes
  // none): what was sent last may lie in sockets, unread.
  [[nodiscard]] rocksdb::Status Receive(
      LaneRequest* request, const std::function<bool()>& owes_ack = nullptr);
  // Makes `request` the next one.
  void PutBack(LaneRequest request) {
    requests_.push_front(std::move(request));
  }

  // Takes the frames that have arrived; with `wait`, waits for one.
  [[nodiscard]] rocksdb::Status TakeArrived(bool wait);
  // Called with each acknowledgement on arrival.
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

  // Number of connections so far.
  uint64_t connections() const { return connections_; }
  bool lost() const { return lost_ && !transfer_->ended(); }
  // Waits until the lane has another connection, and drops the requests of the
  // lost one. kCancelled: the transfer has ended.
  [[nodiscard]] rocksdb::Status AwaitNext();
  // Null once AwaitNext() found no other connection.
  Channel* channel() const { return channel_; }

 private:
  [[nodiscard]] rocksdb::Status ReceiveFrame(const WaitLimit& header_limit,
                                             bool* nothing, Frame* frame);
  [[nodiscard]] rocksdb::Status TakeAck(const rocksdb::Slice& payload);
  [[nodiscard]] rocksdb::Status AcknowledgedNothing() const;
  [[nodiscard]] rocksdb::Status Failed(const rocksdb::Status& status);
  void CountBytes();

  Transfer* const transfer_;
  LanePort* const port_;
  Channel* channel_;
  bool lost_ = false;
  std::deque<LaneRequest> requests_;
  OnAck on_ack_;
  uint64_t acks_ = 0;
  uint64_t chunks_ = 0;  // completely sent
  uint64_t connections_ = 1;
};

}  // namespace sstferry
