#include "pipeline/serve/lane_compressor.h"

#include <algorithm>

namespace sstferry {

using rocksdb::Slice;

namespace {

size_t MostBytes(const Slice& raw) {
  return raw.size() * LaneCompressor::kMaxPercent / 100;
}

}  // namespace

void LaneCompressor::BeginChunk() {
  if (chunk_shrank_ || skipped_bytes_ >= kResampleBytes) {
    skip_bytes_ = 0;
  }
  chunk_shrank_ = false;
}

void LaneCompressor::Skip() {
  shrinks_ = false;
  skip_bytes_ = next_skip_bytes_;
  skipped_bytes_ = 0;
  next_skip_bytes_ = std::min(2 * next_skip_bytes_, kMaxSkipBytes);
}

bool LaneCompressor::SampleShrinks(const Slice& raw) {
  const size_t wanted = kSamples * kSampleBytes;
  if (raw.size() <= wanted) {
    return true;  // a sample would cost no less
  }
  sample_.clear();
  const size_t step = (raw.size() - kSampleBytes) / (kSamples - 1);
  for (size_t i = 0; i < kSamples; ++i) {
    sample_.append(raw.data() + i * step, kSampleBytes);
  }
  sampled_bytes_ += sample_.size();
  Slice ignored;
  return compressor_.Compress(sample_, MostBytes(sample_), &ignored);
}

bool LaneCompressor::Compress(const Slice& raw, Slice* payload) {
  if (skip_bytes_ > 0) {
    skip_bytes_ -= std::min<uint64_t>(skip_bytes_, raw.size());
    skipped_bytes_ += raw.size();
    return false;
  }
  if ((shrinks_ || SampleShrinks(raw)) &&
      compressor_.Compress(raw, MostBytes(raw), payload)) {
    shrinks_ = true;
    chunk_shrank_ = true;
    next_skip_bytes_ = kFirstSkipBytes;
    return true;
  }
  Skip();
  return false;
}

}  // namespace sstferry
