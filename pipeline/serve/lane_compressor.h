// Compresses a lane's chunk data if that saves bytes.
//
// Data that is compressed already (blocks of a family with compression, for
// instance) does not shrink again, and trying costs time. So samples decide:
// - The first piece, and each piece after skipped ones, is sampled: kSamples
//   parts of kSampleBytes, distributed over the piece. If more than 85 % of the
//   bytes remain, this piece and the next kFirstSkipBytes are sent
//   uncompressed. Each further sample that does not shrink doubles the bytes to
//   skip, up to kMaxSkipBytes.
// - If the sample shrinks, whole pieces are compressed until one of them leaves
//   more than 85 %. That piece is sent uncompressed and counts as a sample.
// - A new chunk is sampled if any piece of the previous chunk shrank (the
//   filter at a chunk's end never shrinks), or after kResampleBytes were
//   skipped, so that small chunks do not cost a sample each.
// So data that does not shrink costs a sample of 32 KiB per 1 to 32 MiB.
#pragma once

#include <cstdint>
#include <string>

#include "format/wire_compression.h"
#include "rocksdb/slice.h"

namespace sstferry {

// Decides for the chunks of one lane. Threads: one.
class LaneCompressor {
 public:
  static constexpr uint64_t kMaxPercent = 85;
  static constexpr size_t kSamples = 4;
  static constexpr size_t kSampleBytes = 8u << 10;
  static constexpr uint64_t kResampleBytes = 1u << 20;
  static constexpr uint64_t kFirstSkipBytes = 1u << 20;
  static constexpr uint64_t kMaxSkipBytes = 32u << 20;

  explicit LaneCompressor(int level) : compressor_(level) {}

  void BeginChunk();
  // Returns true if `raw` (1 to kMaxPayloadBytes) was compressed; *payload has
  // the result and is valid until the next call. Returns false if `raw` must be
  // sent as it is.
  bool Compress(const rocksdb::Slice& raw, rocksdb::Slice* payload);

  uint64_t sampled_bytes() const { return sampled_bytes_; }

 private:
  bool SampleShrinks(const rocksdb::Slice& raw);
  void Skip();

  WireCompressor compressor_;
  std::string sample_;
  bool shrinks_ = false;         // the last piece shrank
  bool chunk_shrank_ = false;    // a piece of this chunk shrank
  uint64_t skip_bytes_ = 0;      // still to be sent uncompressed
  uint64_t skipped_bytes_ = 0;   // since the last sample
  uint64_t next_skip_bytes_ = kFirstSkipBytes;
  uint64_t sampled_bytes_ = 0;
};

}  // namespace sstferry
