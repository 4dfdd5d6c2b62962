// Sends the chunks of parts on a lane, as frames with digests.
#pragma once

#include <functional>

#include "pipeline/parts/chunk_builder.h"
#include "pipeline/serve/lane_compressor.h"
#include "pipeline/serve/lane_link.h"

namespace sstferry {

// Sends chunks and stores none of their bytes. If the connection is lost, its
// functions return an error, and the target requests the part again. If the
// part is a unit, the target asks only for the bytes that it does not have.
// Otherwise the chunk is sent again from its first byte, because a second build
// of a chunk may differ.
//
// Ownership: borrows its arguments. Threads: the lane's serving thread.
class LaneSink : public ChunkSink {
 public:
  // After a lost connection, the first kCarefulBytes of a unit are sent in
  // frames of this size. Some links damage a byte from time to time. A damaged
  // frame then costs little.
  static constexpr uint64_t kCarefulFrameBytes = 64u << 10;
  static constexpr uint64_t kCarefulBytes = 1u << 20;

  // Called before the end of a part is sent. `received` are the totals of the
  // chunks that the target already had when it requested the part.
  using OnPartEnd =
      std::function<void(const PartEnd& end, const Totals& received)>;
  LaneSink(Transfer* transfer, LaneLink* link, StageClock* clock,
           HoldBack::Worker* worker, LaneCompressor* compressor, OnPartEnd on_part_end);

  // Called before the chunks that answer `request` are sent.
  void BeginPart(const PartRequest& request);
  // Tells the target that all chunks of the part were sent. Not called for a
  // part that failed.
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
  // Totals of the chunks that were sent completely since BeginPart().
  Totals totals_;
  PartDigest chain_;
  // The chunk that is being sent.
  ChunkBegin begin_;
  // Position in the chunk's file: bytes that were sent, and bytes before
  // begin_.first_byte.
  uint64_t bytes_ = 0;
  ChunkDigest digest_;  // of the frames sent since begin_.first_byte
};

}  // namespace sstferry
