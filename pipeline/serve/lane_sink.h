// Sends the chunks of parts as frames of a lane, with digests.
#pragma once

#include <functional>

#include "pipeline/parts/chunk_builder.h"
#include "pipeline/serve/lane_compressor.h"
#include "pipeline/serve/lane_link.h"

namespace sstferry {

// Sends chunks; keeps none of the bytes. If the connection is lost, calls fail,
// the calling builder ends, and the target requests the part again. A unit then
// resumes at the first byte that the target does not have. A chunk starts over
// at its first byte, because a second build may have other bytes.
//
// Ownership: borrows its arguments. Threads: the lane's serving thread.
class LaneSink : public ChunkSink {
 public:
  // Frame size for the first bytes of a unit that resumes after a lost
  // connection. If a link sometimes damages bytes, each damaged frame then
  // costs little.
  static constexpr uint64_t kCarefulFrameBytes = 64u << 10;
  static constexpr uint64_t kCarefulBytes = 1u << 20;

  // Called for each part before its end is sent; `received` are the totals of
  // the part that the target already had.
  using OnPartEnd =
      std::function<void(const PartEnd& end, const Totals& received)>;
  LaneSink(Transfer* transfer, LaneLink* link, StageClock* clock,
           HoldBack::Worker* worker, LaneCompressor* compressor, OnPartEnd on_part_end);

  // Sets the request that the next chunks answer.
  void BeginPart(const PartRequest& request);
  // Tells the target that it has all chunks of the part. Not called for a part
  // that failed.
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
  // Totals of the chunks sent completely for this request.
  Totals totals_;
  PartDigest chain_;
  // The current chunk.
  ChunkBegin begin_;
  // Bytes of the chunk's file that were sent, or skipped at its start.
  uint64_t bytes_ = 0;
  ChunkDigest digest_;  // over the frames sent since begin_.first_byte
};

}  // namespace sstferry
