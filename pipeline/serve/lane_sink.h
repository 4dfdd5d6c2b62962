// Sends the chunks of parts as frames of a lane with digests, and resumes
// where a lost connection stopped.
#pragma once

#include <functional>
#include <utility>

#include "pipeline/parts/chunk_builder.h"
#include "pipeline/serve/lane_compressor.h"
#include "pipeline/serve/lane_link.h"
#include "pipeline/serve/lane_window.h"

namespace sstferry {

// A rebuilt chunk cannot be made a second time byte by byte. So if its
// connection is lost, the current call waits (and the builder with it) until
// the lane has another connection and the target says how far it came. The sink
// sends the rest again from the window, completely sent chunks and parts
// included. A unit of a clone is read again instead: its calls fail at once,
// and the answer to the next request resumes it.
//
// Ownership: borrows all. Threads: the lane's serving thread.
class LaneSink : public ChunkSink {
 public:
  // Called for each part before its end is sent, also if it is sent again;
  // `held` are the totals that the target had of it before.
  using OnPartEnd =
      std::function<void(const PartEnd& end, const Totals& received)>;
  LaneSink(Transfer* transfer, LaneLink* link, StageClock* clock,
           LaneCompressor* compressor, OnPartEnd on_part_end);

  ~LaneSink() override;

  // Sets the request that the next chunks answer. `rebuilt`: a builder makes
  // them and continues after a waiting call.
  void BeginRange(const PartRequest& request, bool rebuilt) {
    window_.BeginRange(request);
    building_ = rebuilt;
  }
  // Announces and counts that all chunks of the part were sent. A part that
  // ends otherwise has failed.
  [[nodiscard]] rocksdb::Status EndPart();

  rocksdb::Status Begin(const ChunkBegin& begin) override;
  void ReadAgainFrom(std::shared_ptr<const KeptChunk> kept) override {
    window_.chunk().kept = std::move(kept);
  }
  rocksdb::Status Append(const rocksdb::Slice& data) override;
  rocksdb::Status End(const ChunkEnd& end) override;

  // Returns where to resume the unit of the request.
  uint64_t FirstByte(const PartRequest& request) const {
    return window_.FirstByte(request);
  }
  // After a connection was lost between two parts: waits, then sends what the
  // target does not have. OK: the link has another connection.
  [[nodiscard]] rocksdb::Status GoOn();
  // True if a target cannot ask for anything again.
  bool empty() const { return window_.empty(); }
  bool AwaitsAck() const { return window_.AwaitsAck(); }

  // Returns whether a call failed because the target asks for something else
  // (the link's next request), and resets that.
  bool TakeSuperseded() { return std::exchange(superseded_, false); }

 private:
  [[nodiscard]] rocksdb::Status AppendPiece(const rocksdb::Slice& piece);
  // Sends all pending frames, on as many connections as that takes.
  [[nodiscard]] rocksdb::Status Deliver();
  [[nodiscard]] rocksdb::Status SendPending();
  [[nodiscard]] rocksdb::Status SendChunk(LaneWindow::Part* part,
                                          LaneWindow::Chunk* chunk);
  [[nodiscard]] rocksdb::Status SendPiece(const rocksdb::Slice& piece,
                                          FrameList* frames);
  [[nodiscard]] rocksdb::Status SendPartEnd(LaneWindow::Part* part);
  [[nodiscard]] rocksdb::Status Recover();
  // Takes the target's first request on another connection: resumes with it, or
  // puts it back if it asks for anything but the current part.
  [[nodiscard]] rocksdb::Status Reconcile();
  void LogFinished(const ChunkEnd& end) const;
  // Waits until the target asks for a part on the current connection.
  [[nodiscard]] rocksdb::Status AwaitRequest(LaneWindow::Part* part);
  [[nodiscard]] rocksdb::Status Superseded();
  [[nodiscard]] rocksdb::Status TakeAcks(bool wait);

  Transfer* const transfer_;
  LaneLink* const link_;
  LaneWindow window_;
  StageClock* const clock_;
  LaneCompressor* const compressor_;
  const OnPartEnd on_part_end_;
  bool building_ = false;
  bool superseded_ = false;
};

}  // namespace sstferry
