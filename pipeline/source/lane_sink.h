// Frames the chunks of a range onto a lane, digests them on the way, and goes
// on where a lost connection stopped.
#pragma once

#include <string>

#include "pipeline/source/chunk_builder.h"
#include "pipeline/source/lane_compressor.h"
#include "pipeline/source/lane_link.h"
#include "pipeline/source/lane_window.h"

namespace sstferry {

// A rebuilt chunk cannot be made a second time byte by byte. So when its
// connection is lost, the call at hand parks with the builder behind it until
// the lane has another one and its target says how far it has come; what it
// has not got is sent again from the window. A carried chunk is read again
// instead: its calls fail at once, and who answers the next request goes on.
//
// Ownership: borrows all. Threads: the lane's serving one.
// Memory:    the window of a rebuilt chunk, 16 bytes a frame.
class LaneSink : public ChunkSink {
 public:
  LaneSink(Transfer* transfer, LaneLink* link, LaneWindow* window,
           StageClock* clock, LaneCompressor* compressor)
      : transfer_(transfer),
        link_(link),
        window_(window),
        clock_(clock),
        compressor_(compressor) {}

  // What the chunks to come answer; `frames` outlives them.
  void Answer(const RangeRequest& request, FrameList* frames) {
    request_ = request;
    frames_ = frames;
  }

  rocksdb::Status Begin(const ChunkBegin& begin) override;
  rocksdb::Status Append(const rocksdb::Slice& data) override;
  rocksdb::Status End(ChunkEnd* end) override;

  // A call failed because the target asks for something else than the chunk at
  // hand: the link's next request says what.
  bool superseded() const { return superseded_; }
  // The request that is answered now: after a lost connection another one.
  const RangeRequest& request() const { return request_; }
  // Of the chunks of that answer.
  const Totals& totals() const { return totals_; }
  Digest128 chain() const { return chain_.Finish(); }

 private:
  bool rebuilt() const { return begin_.kind == ChunkKind::kRebuilt; }
  [[nodiscard]] rocksdb::Status AppendPiece(const rocksdb::Slice& piece);
  // Sends what is to be sent, on as many connections as it takes.
  [[nodiscard]] rocksdb::Status Deliver();
  [[nodiscard]] rocksdb::Status SendPending();
  [[nodiscard]] rocksdb::Status SendPiece(const rocksdb::Slice& piece);
  [[nodiscard]] rocksdb::Status Recover();
  // Whether the chunk at hand is what the request goes on with; then it does.
  bool GoOnAt(const RangeRequest& request);
  [[nodiscard]] rocksdb::Status OnAck(const ChunkAck& ack);
  [[nodiscard]] rocksdb::Status TakeAcks(bool wait);
  void BeginAnswer(const RangeRequest& request);

  Transfer* const transfer_;
  LaneLink* const link_;
  LaneWindow* const window_;
  StageClock* const clock_;
  LaneCompressor* const compressor_;
  RangeRequest request_;
  FrameList* frames_ = nullptr;
  Totals totals_;
  RangeDigest chain_;
  std::optional<std::string> last_key_;  // of the chunk before
  bool superseded_ = false;

  // Of the chunk at hand.
  ChunkBegin begin_;
  bool begun_ = false;      // on this connection
  ChunkEnd* end_ = nullptr;  // all of it is there
  bool delivered_ = false;  // the target says that it has all of it
};

}  // namespace sstferry
