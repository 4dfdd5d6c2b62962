// Sends the chunks of parts as frames of a lane, with digests.
#pragma once

#include <functional>

#include "pipeline/parts/chunk_builder.h"
#include "pipeline/serve/lane_compressor.h"
#include "pipeline/serve/lane_link.h"

namespace sstferry {

// Keeps nothing of what it sends: where the connection is lost, its calls fail,
// the builder behind it ends, and the target asks for the part again. A unit is
// then read from the byte that the target has come to; a chunk cannot be built
// twice byte by byte, so it is sent from its first one.
//
// Ownership: borrows all. Threads: the lane's serving thread.
class LaneSink : public ChunkSink {
 public:
  // Frame size for the first data of a unit that resumes after a cut: on a
  // link that sometimes damages bytes, each damaged frame then costs little.
  static constexpr uint64_t kCarefulFrameBytes = 64u << 10;
  static constexpr uint64_t kCarefulBytes = 1u << 20;

  // Called for each part before its end is sent; `received` are the totals that
  // the target had of it before.
  using OnPartEnd =
      std::function<void(const PartEnd& end, const Totals& received)>;
  LaneSink(Transfer* transfer, LaneLink* link, StageClock* clock,
           HoldBack::Worker* worker, LaneCompressor* compressor, OnPartEnd on_part_end);

  // Sets the request that the next chunks answer.
  void BeginPart(const PartRequest& request);
  // Tells the target that it has all chunks of the part. A part that ends
  // otherwise has failed.
  [[nodiscard]] rocksdb::Status EndPart();

  rocksdb::Status Begin(const ChunkBegin& begin) override;
  rocksdb::Status Append(const rocksdb::Slice& data) override;
  rocksdb::Status End(const ChunkEnd& end) override;

 private:
  [[nodiscard]] rocksdb::Status SendPiece(const rocksdb::Slice& piece);
  void LogFinished(const ChunkEnd& end) const;

  Transfer* const transfer_;
  LaneLink* const link_;
  StageClock* const clock_;
  HoldBack::Worker* const worker_;
  LaneCompressor* const compressor_;
  const OnPartEnd on_part_end_;

  PartRequest request_;
  // Counts of the chunks sent completely as an answer to it:
  Totals totals_;
  PartDigest chain_;
  // The chunk at hand:
  ChunkBegin begin_;
  uint64_t bytes_ = 0;  // of its file, up to what was sent
  ChunkDigest digest_;  // over the frames sent, from begin_.first_byte on
};

}  // namespace sstferry
