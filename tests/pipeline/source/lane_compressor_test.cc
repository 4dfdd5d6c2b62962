// When a lane tries to compress, and when it skips data.
#include "pipeline/serve/lane_compressor.h"

#include "format/limits.h"
#include "tests/support/catch.h"
#include "tests/support/sample_bytes.h"

namespace sstferry::lane_compressor_test {
namespace {

using rocksdb::Slice;
using test::RandomBytes;
using test::ShrinkingBytes;

constexpr size_t kPieceBytes = kMaxPayloadBytes;

// Sends `count` pieces. Returns how many were compressed.
int Send(LaneCompressor* lane, const std::string& piece, int count) {
  int compressed = 0;
  for (int i = 0; i < count; ++i) {
    Slice payload;
    compressed += lane->Compress(piece, &payload) ? 1 : 0;
  }
  return compressed;
}

TEST_CASE("Lane compresses every piece of data that shrinks",
          "[source][compression]") {
  LaneCompressor lane(1);
  lane.BeginChunk();
  REQUIRE(Send(&lane, ShrinkingBytes(kPieceBytes), 20) == 20);
  // A single sample was enough.
  REQUIRE(lane.sampled_bytes() ==
          LaneCompressor::kSamples * LaneCompressor::kSampleBytes);
  REQUIRE(Send(&lane, ShrinkingBytes(1), 1) == 0);
  REQUIRE(Send(&lane, ShrinkingBytes(500), 1) == 0);  // still skipping
}

TEST_CASE("Lane samples noise less and less often", "[source][compression]") {
  LaneCompressor lane(1);
  const std::string noise = RandomBytes(kPieceBytes, 7);
  constexpr uint64_t kSample =
      LaneCompressor::kSamples * LaneCompressor::kSampleBytes;
  uint64_t sampled = 0;
  std::vector<int> pieces_between;
  int since = 0;
  for (int i = 0; i < 300; ++i) {
    if (i % 64 == 0) {
      lane.BeginChunk();
    }
    Slice payload;
    REQUIRE_FALSE(lane.Compress(noise, &payload));
    ++since;
    if (lane.sampled_bytes() != sampled) {
      sampled = lane.sampled_bytes();
      pieces_between.push_back(since);
      since = 0;
    }
  }
  // The lane skips 1, 2, 4 ... MiB between samples. Some new chunks are sampled
  // earlier.
  REQUIRE(pieces_between.size() > 8);
  REQUIRE(pieces_between[1] == 2);
  REQUIRE(pieces_between[2] == 3);
  REQUIRE(pieces_between[3] == 5);
  REQUIRE(sampled <= 20 * kSample);
}

TEST_CASE("Lane tests in each new chunk whether data shrinks",
          "[source][compression]") {
  LaneCompressor lane(1);
  const std::string noise = RandomBytes(kPieceBytes, 7);
  const std::string shrinking = ShrinkingBytes(kPieceBytes);
  lane.BeginChunk();
  REQUIRE(Send(&lane, noise, 20) == 0);
  REQUIRE(Send(&lane, shrinking, 1) == 0);  // still skipping after noise
  lane.BeginChunk();
  REQUIRE(Send(&lane, shrinking, 5) == 5);
  // Noise at a chunk's end (the table's filter) does not affect the next chunk.
  REQUIRE(Send(&lane, RandomBytes(100'000, 7), 1) == 0);
  lane.BeginChunk();
  REQUIRE(Send(&lane, shrinking, 5) == 5);
}

TEST_CASE("Lane finds data that begins to shrink inside a chunk",
          "[source][compression]") {
  LaneCompressor lane(1);
  lane.BeginChunk();
  REQUIRE(Send(&lane, RandomBytes(kPieceBytes, 7), 100) == 0);
  REQUIRE(Send(&lane, ShrinkingBytes(kPieceBytes), 40) >= 8);
}

TEST_CASE("Lane does not sample each of many small chunks of noise",
          "[source][compression]") {
  LaneCompressor lane(1);
  const std::string noise = RandomBytes(100'000, 7);
  for (int i = 0; i < 1000; ++i) {
    lane.BeginChunk();
    REQUIRE(Send(&lane, noise, 1) == 0);
  }
  REQUIRE(lane.sampled_bytes() < 1000 * noise.size() / 30);
}

TEST_CASE("Lane sends a piece uncompressed if it shrinks less than its sample",
          "[source][compression]") {
  // Only the sampled bytes shrink, the rest is noise.
  std::string piece = RandomBytes(kPieceBytes, 7);
  const size_t step = (piece.size() - LaneCompressor::kSampleBytes) /
                      (LaneCompressor::kSamples - 1);
  for (size_t i = 0; i < LaneCompressor::kSamples; ++i) {
    piece.replace(i * step, LaneCompressor::kSampleBytes,
                  LaneCompressor::kSampleBytes, 'v');
  }
  LaneCompressor lane(1);
  REQUIRE(Send(&lane, piece, 100) == 0);
  REQUIRE(lane.sampled_bytes() <=
          8 * LaneCompressor::kSamples * LaneCompressor::kSampleBytes);
}

}  // namespace
}  // namespace sstferry::lane_compressor_test
