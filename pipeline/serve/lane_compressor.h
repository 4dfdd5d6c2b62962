// Compresses the chunk data of a lane, if that makes it smaller.
//
// Some data does not become smaller, for example the blocks of a column family
// that RocksDB compresses. Trying costs time, so samples decide:
// - The first piece of data is sampled, and so is each piece after skipped
//   data. A sample consists of kSamples parts of kSampleBytes from all over the
//   piece. If compression leaves more than 85 % of the sample, this piece and
//   the next kFirstSkipBytes are sent uncompressed. If the next sample does not
//   shrink either, twice as many bytes are skipped, up to kMaxSkipBytes.
// - If a sample shrinks, whole pieces are compressed, until more than 85 % of a
//   piece are left. This piece is sent uncompressed and counts as a sample.
// - A new chunk begins with a sample if a piece of the previous chunk shrank.
//   (The filter at the end of a chunk never shrinks.) It also does so if
//   kResampleBytes were skipped since the last sample. Small chunks therefore
//   often need no sample. Data that does not shrink thus costs one sample of 32
//   KiB per 1 to 32 MiB.
#pragma once

#include <cstdint>
#include <string>

#include "format/wire_compression.h"
#include "rocksdb/slice.h"

namespace sstferry {

// Compresses the chunks of one lane. Threads: one.
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
  // Compresses `raw`, which has 1 to kMaxPayloadBytes. Returns true if *payload
  // is the compressed data, which is valid until the next call. Returns false
  // if the caller must send `raw` itself.
  bool Compress(const rocksdb::Slice& raw, rocksdb::Slice* payload);

  uint64_t sampled_bytes() const { return sampled_bytes_; }

 private:
  bool SampleShrinks(const rocksdb::Slice& raw);
  void Skip();

  WireCompressor compressor_;
  std::string sample_;
  bool shrinks_ = false;         // the last piece shrank
  bool chunk_shrank_ = false;    // a piece of this chunk shrank
  uint64_t skip_bytes_ = 0;      // bytes that must not be compressed
  uint64_t skipped_bytes_ = 0;   // since the last sample
  uint64_t next_skip_bytes_ = kFirstSkipBytes;
  uint64_t sampled_bytes_ = 0;
};

}  // namespace sstferry
