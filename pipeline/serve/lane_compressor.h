// Compresses a lane's chunk data where that saves bytes.
//
// Bytes that are already compressed (blocks of a family with compression, for
// instance) do not shrink again, and trying costs time. So samples decide:
//   - The first piece, and each piece after skipped ones, is sampled: kSamples
//     parts of kSampleBytes, spread over it. If more than 85 % remain, this
//     piece and the next kFirstSkipBytes are sent as they are, and after each
//     further such sample twice as many, up to kMaxSkipBytes.
//   - If the sample shrinks, whole pieces are compressed until one of them
//     leaves more than 85 %. That one is sent as it is and counts as a sample.
//   - A new chunk is sampled if anything of the previous one shrank (its filter
//     comes last and never does), or once kResampleBytes have been skipped, so
//     that small chunks do not cost a sample each.
// So data that does not shrink costs a sample of 32 KiB in 1 to 32 MiB.
#pragma once

#include <cstdint>
#include <string>

#include "format/wire_compression.h"
#include "rocksdb/slice.h"

namespace sstferry {

// Threads: one.
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
  // True: *payload is `raw` (1 to kMaxPayloadBytes) compressed, valid until the
  // next call. False: send `raw` as it is.
  bool Compress(const rocksdb::Slice& raw, rocksdb::Slice* payload);

  uint64_t sampled_bytes() const { return sampled_bytes_; }

 private:
  bool SampleShrinks(const rocksdb::Slice& raw);
  void Skip();

  WireCompressor compressor_;
  std::string sample_;
  bool shrinks_ = false;         // the last piece shrank
  bool chunk_shrank_ = false;    // a piece of this chunk shrank
  uint64_t skip_bytes_ = 0;      // still to be sent as they are
  uint64_t skipped_bytes_ = 0;   // since the last sample
  uint64_t next_skip_bytes_ = kFirstSkipBytes;
  uint64_t sampled_bytes_ = 0;
};

}  // namespace sstferry
