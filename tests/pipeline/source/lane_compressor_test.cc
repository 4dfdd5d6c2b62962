// When a lane tries to compress, and when it leaves that.
#include "pipeline/source/lane_compressor.h"

#include <random>

#include "format/limits.h"
#include "tests/support/catch.h"

namespace sstferry {
namespace {

using rocksdb::Slice;

constexpr size_t kPieceBytes = kMaxPayloadBytes;

std::string Noise(size_t bytes) {
  std::mt19937_64 random(7);
  std::string text(bytes, '\0');
  for (char& c : text) {
    c = static_cast<char>(random());
  }
  return text;
}

std::string Shrinking(size_t bytes) {
  std::string text = Noise(bytes);
  for (size_t i = 0; i < bytes; ++i) {
    text[i] = i % 64 < 16 ? text[i] : 'v';
  }
  return text;
}

// How many of `count` pieces were compressed.
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
  REQUIRE(Send(&lane, Shrinking(kPieceBytes), 20) == 20);
  // One sample was enough.
  REQUIRE(lane.sampled_bytes() ==
          LaneCompressor::kSamples * LaneCompressor::kSampleBytes);
  REQUIRE(Send(&lane, Shrinking(1), 1) == 0);
  REQUIRE(Send(&lane, Shrinking(500), 1) == 0);  // still skipping
}

TEST_CASE("Lane samples noise ever less often", "[source][compression]") {
  LaneCompressor lane(1);
  const std::string noise = Noise(kPieceBytes);
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
  // A sample itself, then 1, 2, 4 ... MiB skipped, and anew for some chunks.
  REQUIRE(pieces_between.size() > 8);
  REQUIRE(pieces_between[1] == 2);
  REQUIRE(pieces_between[2] == 3);
  REQUIRE(pieces_between[3] == 5);
  REQUIRE(sampled <= 20 * kSample);
}

TEST_CASE("Lane asks again in a new chunk whether data shrinks",
          "[source][compression]") {
  LaneCompressor lane(1);
  const std::string noise = Noise(kPieceBytes);
  const std::string shrinking = Shrinking(kPieceBytes);
  lane.BeginChunk();
  REQUIRE(Send(&lane, noise, 20) == 0);
  REQUIRE(Send(&lane, shrinking, 1) == 0);  // skipped by the verdict
  lane.BeginChunk();
  REQUIRE(Send(&lane, shrinking, 5) == 5);
  // The filter at a chunk's end does not spoil the next one.
  REQUIRE(Send(&lane, Noise(100'000), 1) == 0);
  lane.BeginChunk();
  REQUIRE(Send(&lane, shrinking, 5) == 5);
}

TEST_CASE("Lane finds data that begins to shrink inside a chunk",
          "[source][compression]") {
  LaneCompressor lane(1);
  lane.BeginChunk();
  REQUIRE(Send(&lane, Noise(kPieceBytes), 100) == 0);
  REQUIRE(Send(&lane, Shrinking(kPieceBytes), 40) >= 8);
}

TEST_CASE("Lane does not sample each of many small chunks of noise",
          "[source][compression]") {
  LaneCompressor lane(1);
  const std::string noise = Noise(100'000);
  for (int i = 0; i < 1000; ++i) {
    lane.BeginChunk();
    REQUIRE(Send(&lane, noise, 1) == 0);
  }
  REQUIRE(lane.sampled_bytes() < 1000 * noise.size() / 30);
}

TEST_CASE("Lane leaves a piece whose sample promised too much",
          "[source][compression]") {
  // What is sampled shrinks, all else is noise.
  std::string piece = Noise(kPieceBytes);
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
}  // namespace sstferry
