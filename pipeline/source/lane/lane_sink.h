// Frames the chunks of ranges onto a lane, digests them on the way, and goes
// on where a lost connection stopped.
#pragma once

#include <functional>
#include <utility>

#include "pipeline/source/chunk/chunk_builder.h"
#include "pipeline/source/lane/lane_compressor.h"
#include "pipeline/source/lane/lane_link.h"
#include "pipeline/source/lane/lane_window.h"

namespace sstferry {

// A rebuilt chunk cannot be made a second time byte by byte. So when its
// connection is lost, the call at hand parks with the builder behind it until
// the lane has another one and its target says how far it has come; what it
// has not got is sent again from the window, chunks and ranges that were sent
// in whole included. A carried chunk is read again instead: its calls fail at
// once, and who answers the next request goes on.
//
// Ownership: borrows all. Threads: the lane's serving one.
class LaneSink : public ChunkSink {
 public:
  // Is told of each range before its end is sent, also when it is sent again,
  // and what the target had of it before.
  using OnRangeEnd =
      std::function<void(const RangeEnd& end, const Totals& held)>;
  LaneSink(Transfer* transfer, LaneLink* link, StageClock* clock,
           LaneCompressor* compressor, OnRangeEnd on_range_end);

  // What the chunks to come answer. `rebuilt`: by a builder, which goes on
  // behind a parked call. `replaced_in`: the order of what the chunks replace;
  // null: they fill an empty database.
  void BeginRange(const RangeRequest& request, bool rebuilt,
                  const rocksdb::Comparator* replaced_in) {
    window_.BeginRange(request);
    building_ = rebuilt;
    replaced_in_ = replaced_in;
  }
  // All chunks of the range are there: announces and books that. Anything else
  // that ends one has failed.
  [[nodiscard]] rocksdb::Status EndRange();

  rocksdb::Status Begin(const ChunkBegin& begin) override;
  rocksdb::Status Append(const rocksdb::Slice& data) override;
  rocksdb::Status End(const ChunkEnd& end) override;

  // Where to go on with the carried chunk that the request is for.
  uint64_t FirstByte(const RangeRequest& request) const {
    return window_.FirstByte(request);
  }
  // The connection was lost between two ranges: parks, then sends what the
  // target has not got. OK: the link has another one.
  [[nodiscard]] rocksdb::Status GoOn();
  // Whether there is anything that a target could ask for again.
  bool empty() const { return window_.empty(); }

  // A call failed because the target asks for something else than what is at
  // hand: the link's next request says what. Resets that.
  bool TakeSuperseded() { return std::exchange(superseded_, false); }

 private:
  [[nodiscard]] rocksdb::Status AppendPiece(const rocksdb::Slice& piece);
  // Sends what is to be sent, on as many connections as it takes.
  [[nodiscard]] rocksdb::Status Deliver();
  [[nodiscard]] rocksdb::Status SendPending();
  [[nodiscard]] rocksdb::Status SendChunk(LaneWindow::Range* range,
                                          LaneWindow::Chunk* chunk);
  [[nodiscard]] rocksdb::Status SendPiece(const rocksdb::Slice& piece,
                                          FrameList* frames);
  [[nodiscard]] rocksdb::Status SendRangeEnd(LaneWindow::Range* range);
  [[nodiscard]] rocksdb::Status Recover();
  // Takes the target's first request on another connection: resumes with it, or
  // puts it back if it asks for anything else than the range at hand.
  [[nodiscard]] rocksdb::Status Reconcile();
  // Waits until a range is asked for on the connection at hand.
  [[nodiscard]] rocksdb::Status AwaitRequest(LaneWindow::Range* range);
  [[nodiscard]] rocksdb::Status Superseded();
  [[nodiscard]] rocksdb::Status TakeAcks(bool wait);

  Transfer* const transfer_;
  LaneLink* const link_;
  LaneWindow window_;
  StageClock* const clock_;
  LaneCompressor* const compressor_;
  const OnRangeEnd on_range_end_;
  bool building_ = false;
  const rocksdb::Comparator* replaced_in_ = nullptr;
  bool superseded_ = false;
};

}  // namespace sstferry
