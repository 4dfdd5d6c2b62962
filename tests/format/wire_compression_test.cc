// The codec of compressed chunk data: round trips and refused payloads.
#include "format/wire_compression.h"

#include <malloc.h>
#include <rapidcheck.h>
#include <zstd.h>

#include "format/coding.h"
#include "format/digest.h"
#include "format/limits.h"
#include "tests/format/samples.h"
#include "tests/support/catch.h"
#include "tests/support/sample_bytes.h"

namespace sstferry::wire_compression_test {

using rocksdb::Slice;
using rocksdb::Status;
using test::RandomBytes;
using test::ShrinkingBytes;

namespace {

constexpr size_t kGuardBytes = 64;

std::string Compressed(const std::string& raw, int level = 1) {
  WireCompressor compressor(level);
  Slice payload;
  REQUIRE(compressor.Compress(raw, kMaxPayloadBytes, &payload));
  return payload.ToString();
}

// Returns a payload: the header, then the zstd frame that the caller made.
std::string Payload(uint32_t raw_bytes, const std::string& zstd,
                    const std::string& raw = "") {
  std::string payload;
  PutFixed32(&payload, raw_bytes);
  PutFixed64(&payload, Digest64(raw));
  return payload + zstd;
}

// Returns a zstd frame of runs of "a" that announces `content` bytes.
std::string Runs(uint64_t content, uint64_t real) {
  std::string frame("\x28\xb5\x2f\xfd\xe0", 5);  // single segment, 8-byte size
  PutFixed64(&frame, content);
  while (true) {
    const uint32_t run = static_cast<uint32_t>(
        std::min<uint64_t>(real, 128u << 10));
    real -= run;
    const uint32_t block = (run << 3) | 2u | (real == 0 ? 1u : 0u);
    for (int i = 0; i < 3; ++i) {
      frame.push_back(static_cast<char>(block >> (8 * i)));
    }
    frame.push_back('a');
    if (real == 0) {
      return frame;
    }
  }
}

// Decompresses a payload as a receiver does. Requires that nothing is written
// after raw_bytes.
Status Receive(WireDecompressor* decompressor, const std::string& payload,
               std::string* raw) {
  CompressedPayload parsed;
  Status status = ParseCompressedPayload(payload, &parsed);
  if (!status.ok()) {
    return status;
  }
  REQUIRE(parsed.raw_bytes >= 1);
  REQUIRE(parsed.raw_bytes <= kMaxPayloadBytes);
  raw->assign(parsed.raw_bytes + kGuardBytes, '\x5a');
  status = decompressor->Decompress(parsed, raw->data());
  REQUIRE(raw->substr(parsed.raw_bytes) == std::string(kGuardBytes, '\x5a'));
  raw->resize(parsed.raw_bytes);
  return status;
}

Status Receive(const std::string& payload) {
  WireDecompressor decompressor;
  std::string raw;
  return Receive(&decompressor, payload, &raw);
}

void RequireRefused(const std::string& payload, const std::string& sentence) {
  const Status status = Receive(payload);
  INFO("expected \"" << sentence << "\", found " << status.ToString());
  REQUIRE(status.IsCorruption());
  REQUIRE(status.ToString().find(sentence) != std::string::npos);
}

}  // namespace

TEST_CASE("Compressed chunk data is decompressed to the same bytes",
          "[format]") {
  WireDecompressor decompressor;
  for (const int level : {1, 3, 19}) {
    WireCompressor compressor(level);
    for (const size_t bytes :
         {size_t{1}, size_t{100}, size_t{4096}, size_t{70'001},
          size_t{kMaxPayloadBytes}}) {
      INFO("level " << level << ", " << bytes << " bytes");
      const std::string raw = ShrinkingBytes(bytes);
      Slice payload;
      REQUIRE(compressor.Compress(raw, kMaxPayloadBytes, &payload));
      std::string back;
      REQUIRE_OK(Receive(&decompressor, payload.ToString(), &back));
      REQUIRE((back == raw));
      if (bytes > 4096) {
        REQUIRE(payload.size() < raw.size() / 2);
      }
    }
    INFO("a context of level " << level << " takes "
                               << compressor.memory_bytes());
    REQUIRE(compressor.memory_bytes() <= (level == 19 ? 32u << 20 : 4u << 20));
  }
}

TEST_CASE("Random chunk data survives compression", "[format]") {
  WireCompressor compressor(1);
  WireDecompressor decompressor;
  REQUIRE(rc::check([&] {
    std::string raw = *rc::gen::nonEmpty<std::string>();
    raw.append(*rc::gen::inRange<size_t>(0, 3000), raw[0]);
    Slice payload;
    RC_ASSERT(compressor.Compress(raw, kMaxPayloadBytes, &payload));
    std::string back;
    RC_ASSERT(Receive(&decompressor, payload.ToString(), &back).ok());
    RC_ASSERT(back == raw);
  }));
}

TEST_CASE("Data that does not shrink enough is not compressed", "[format]") {
  WireCompressor compressor(1);
  Slice payload;
  const std::string noise = RandomBytes(100'000, 1);
  REQUIRE_FALSE(compressor.Compress(noise, noise.size(), &payload));
  const std::string shrinking = ShrinkingBytes(100'000);
  REQUIRE(compressor.Compress(shrinking, shrinking.size(), &payload));
  const size_t bytes = payload.size();
  for (size_t most = bytes / 2; most < bytes + 100; most += 7) {
    const bool fits = compressor.Compress(shrinking, most, &payload);
    REQUIRE((!fits || payload.size() <= most));
    REQUIRE((fits || most < bytes + 20));
    REQUIRE((!fits || most >= bytes));
  }
  REQUIRE_FALSE(compressor.Compress("aaaaaaaaaaaaaaaaaaaaaaaaaaaa", 12,
                                    &payload));
}

TEST_CASE("The hand-written compressed frame is decompressed", "[format]") {
  WireDecompressor decompressor;
  std::string raw;
  REQUIRE_OK(Receive(&decompressor, SampleCompressedPayload(), &raw));
  REQUIRE(raw == std::string(100, 'a'));
}

TEST_CASE("Every truncation of compressed chunk data is refused",
          "[format][corruption]") {
  const std::string payload = Compressed(ShrinkingBytes(5000));
  for (size_t bytes = 0; bytes < payload.size(); ++bytes) {
    INFO(bytes);
    REQUIRE(Receive(payload.substr(0, bytes)).IsCorruption());
  }
  RequireRefused(payload + '\0', "bytes of the only zstd frame");
  RequireRefused(payload + payload.substr(12), "bytes of the only zstd frame");
}

TEST_CASE("Every single-bit flip of compressed chunk data is refused",
          "[format][corruption]") {
  const std::string raw = ShrinkingBytes(3000);
  const std::string payload = Compressed(raw);
  WireDecompressor decompressor;
  size_t harmless = 0;
  for (size_t bit = 0; bit < payload.size() * 8; ++bit) {
    std::string bad = payload;
    bad[bit / 8] ^= static_cast<char>(1u << (bit % 8));
    std::string back;
    const Status status = Receive(&decompressor, bad, &back);
    INFO("byte " << bit / 8 << " bit " << bit % 8 << ": "
                 << status.ToString());
    REQUIRE((status.IsCorruption() || back == raw));
    harmless += status.ok() ? 1 : 0;
  }
  INFO(harmless);
  REQUIRE(harmless <= 16);  // bits that zstd does not use
  // The errors have not damaged the context.
  std::string back;
  REQUIRE_OK(Receive(&decompressor, payload, &back));
  REQUIRE((back == raw));
}

TEST_CASE("The digest finds bytes that zstd does not", "[format][corruption]") {
  // zstd does not protect the byte of a run block, so it accepts another one.
  std::string payload = SampleCompressedPayload();
  payload.back() = 'b';
  RequireRefused(payload, "digest of the decompressed bytes");
}

TEST_CASE("A wrong raw size is refused", "[format][corruption]") {
  const std::string raw = ShrinkingBytes(5000);
  const std::string good = Compressed(raw);
  for (const uint32_t size :
       {0u, 1u, 4999u, 5001u, kMaxPayloadBytes, kMaxPayloadBytes + 1, ~0u}) {
    std::string bad;
    PutFixed32(&bad, size);
    bad += good.substr(4);
    INFO(size);
    const Status status = Receive(bad);
    REQUIRE(status.IsCorruption());
    const bool in_bounds = size != 0 && size <= kMaxPayloadBytes;
    REQUIRE(status.ToString().find(in_bounds ? "content size"
                                             : "raw_bytes: expected 1 to") !=
            std::string::npos);
  }
}

TEST_CASE("A decompression bomb costs no more than a frame",
          "[format][corruption]") {
  // 1 GiB of decompressed bytes, whether the frame announces them or not.
  const uint64_t bomb = 1u << 30;
  const std::string runs = Runs(bomb, bomb);
  REQUIRE(runs.size() < 40'000);
  RequireRefused(Payload(static_cast<uint32_t>(bomb), runs), "raw_bytes");
  RequireRefused(Payload(1000, runs), "content size");
  RequireRefused(Payload(1000, Runs(1000, bomb)), "expected 1000 bytes");
  RequireRefused(Payload(1000, Runs(1000, 1001)), "expected 1000 bytes");
  RequireRefused(Payload(1000, Runs(1000, 999)), "zstd frame: expected 1000");
  const std::string raw(1000, 'a');
  REQUIRE_OK(Receive(Payload(1000, Runs(1000, 1000), raw)));
}

TEST_CASE("A huge window takes no memory", "[format][corruption]") {
  // A frame without the single-segment flag: a window of 2^30, the size in four
  // bytes, one run.
  const std::string zstd("\x28\xb5\x2f\xfd\x80\xa0\x64\0\0\0\x23\x03\0a", 14);
  const struct mallinfo2 before = mallinfo2();
  const Status status =
      Receive(Payload(100, zstd, std::string(100, 'a')));
  const struct mallinfo2 after = mallinfo2();
  INFO(status.ToString());
  REQUIRE((status.ok() || status.IsCorruption()));
  REQUIRE(after.arena + after.hblkhd <
          before.arena + before.hblkhd + (1u << 20));
}

TEST_CASE("Only a single zstd frame that announces its size is accepted",
          "[format][corruption]") {
  const std::string raw = ShrinkingBytes(500);
  SECTION("no size") {
    // A window of 2^10, no content size, one run.
    const std::string zstd("\x28\xb5\x2f\xfd\x00\x00\x23\x03\0a", 10);
    RequireRefused(Payload(100, zstd, std::string(100, 'a')),
                   "expected a content size");
  }
  SECTION("a skippable frame") {
    const std::string skippable("\x50\x2a\x4d\x18\x04\0\0\0abcd", 12);
    RequireRefused(Payload(4, skippable, "abcd"), "expected magic");
    RequireRefused(Payload(500, skippable + Compressed(raw).substr(12), raw),
                   "expected magic");
  }
  SECTION("zstd before 1.0") {
    for (char version = 0x22; version <= 0x27; ++version) {
      std::string old = Compressed(raw);
      old[12] = version;
      RequireRefused(old, "expected magic");
    }
  }
  SECTION("not zstd") {
    RequireRefused(Payload(100, std::string(100, '\0')), "expected magic");
    RequireRefused(Payload(100, ""), "expected at least 16 bytes");
  }
}

}  // namespace sstferry::wire_compression_test
