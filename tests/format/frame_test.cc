#include "format/frame.h"

#include <set>

#include "format/limits.h"
#include "tests/format/samples.h"
#include "tests/support/catch.h"

namespace sstferry::frame_test {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Checks bytes that should be one frame, as a receiver does.
Status Check(const std::string& frame) {
  FrameHeader header;
  const Status status = DecodeFrameHeader(frame, &header);
  if (!status.ok()) {
    return status;
  }
  return CheckFrameDigest(
      frame.data(), header,
      Slice(frame.data() + kFrameHeaderBytes,
            frame.size() - kFrameHeaderBytes));
}

}  // namespace

TEST_CASE("A frame's header is decoded as it was encoded", "[format]") {
  const std::string frame = MakeFrame(FrameType::kChunkData, 77, "payload");
  FrameHeader header;
  REQUIRE_OK(DecodeFrameHeader(frame, &header));
  REQUIRE(header.type == FrameType::kChunkData);
  REQUIRE(header.sequence == 77);
  REQUIRE(header.payload_bytes == 7);
  REQUIRE(header.flags == 0);
  REQUIRE_OK(Check(frame));
}

TEST_CASE("A frame's digest does not depend on the pieces of its payload",
          "[format]") {
  const std::string payload(100000, 'x');
  const std::string whole = MakeFrame(FrameType::kChunkData, 5, payload);
  const Slice parts[] = {Slice(payload.data(), 1), Slice(),
                         Slice(payload.data() + 1, 70000),
                         Slice(payload.data() + 70001, 29999)};
  std::string header(kFrameHeaderBytes, '\0');
  uint64_t digest = 0;
  EncodeFrameHeader(FrameType::kChunkData, 5, parts, 4, header.data(),
                    &digest);
  REQUIRE(header == whole.substr(0, kFrameHeaderBytes));
  FrameHeader decoded;
  REQUIRE_OK(DecodeFrameHeader(header, &decoded));
  REQUIRE(decoded.digest == digest);
}

TEST_CASE("A frame without a payload is complete", "[format]") {
  std::string header(kFrameHeaderBytes, '\0');
  EncodeFrameHeader(FrameType::kListRequest, 1, nullptr, 0, header.data(),
                    nullptr);
  REQUIRE_OK(Check(header));
  REQUIRE(header == MakeFrame(FrameType::kListRequest, 1, ""));
}

TEST_CASE("Every single-bit flip of a frame is rejected",
          "[format][corruption]") {
  for (const SampleFrame& sample : SampleFrames()) {
    const std::string good = MakeFrame(sample.type, 9, sample.payload);
    REQUIRE_OK(Check(good));
    for (size_t bit = 0; bit < good.size() * 8; ++bit) {
      std::string bad = good;
      bad[bit / 8] ^= static_cast<char>(1u << (bit % 8));
      const Status status = Check(bad);
      INFO(FrameTypeName(sample.type) << " byte " << bit / 8 << " bit "
                                      << bit % 8 << ": " << status.ToString());
      const bool version_byte = bit / 8 == 4;
      REQUIRE((status.IsCorruption() ||
               (version_byte && status.IsNotSupported())));
    }
  }
}

TEST_CASE("Every truncation of a frame is rejected", "[format][corruption]") {
  for (const SampleFrame& sample : SampleFrames()) {
    const std::string good = MakeFrame(sample.type, 9, sample.payload);
    for (size_t bytes = 0; bytes < good.size(); ++bytes) {
      const Status status = Check(good.substr(0, bytes));
      INFO(FrameTypeName(sample.type) << " cut to " << bytes << ": "
                                      << status.ToString());
      if (bytes < kFrameHeaderBytes) {
        REQUIRE(status.IsIncomplete());
      } else {
        REQUIRE(status.IsCorruption());
      }
    }
  }
}

TEST_CASE("A frame header bounds its length before anything is allocated",
          "[format][corruption]") {
  std::string frame = MakeFrame(FrameType::kChunkData, 0, "x");
  FrameHeader header;
  const uint32_t most = kMaxPayloadBytes;
  for (int i = 0; i < 4; ++i) {
    frame[16 + i] = static_cast<char>(most >> (8 * i));
  }
  REQUIRE_OK(DecodeFrameHeader(frame, &header));
  REQUIRE(header.payload_bytes == kMaxPayloadBytes);
  frame[16] = 1;
  const Status status = DecodeFrameHeader(frame, &header);
  REQUIRE(status.IsCorruption());
  REQUIRE(MessageOf(status) ==
          "frame header: payload_bytes: expected at most 1048576, found "
          "1048577, offset 16");
}

TEST_CASE("Only the low eight flag bits of a frame may be ignored",
          "[format][corruption]") {
  for (int bit = 0; bit < 16; ++bit) {
    std::string frame = MakeFrame(FrameType::kPing, 0, "12345678");
    frame[6 + bit / 8] = static_cast<char>(1u << (bit % 8));
    FrameHeader header;
    const Status status = DecodeFrameHeader(frame, &header);
    INFO("bit " << bit << ": " << status.ToString());
    REQUIRE(status.ok() == (bit < 8));
  }
}

TEST_CASE("Only chunk data may be flagged as compressed",
          "[format][corruption]") {
  for (const SampleFrame& sample : SampleFrames()) {
    for (int bit = 8; bit < 16; ++bit) {
      const std::string frame =
          MakeFrame(sample.type, 3, sample.payload,
                    static_cast<uint16_t>(1u << bit));
      FrameHeader header;
      const Status status = DecodeFrameHeader(frame, &header);
      INFO(FrameTypeName(sample.type) << " bit " << bit << ": "
                                      << status.ToString());
      REQUIRE(status.ok() ==
              (sample.type == FrameType::kChunkData && bit == 8));
      REQUIRE((!status.ok() || header.flags == kFrameFlagZstd));
    }
  }
  REQUIRE_OK(Check(SampleCompressedFrame()));
}

TEST_CASE("A newer frame version is not reported as damage", "[format]") {
  std::string frame = MakeFrame(FrameType::kPing, 0, "12345678");
  frame[4] = 2;
  FrameHeader header;
  const Status status = DecodeFrameHeader(frame, &header);
  REQUIRE(status.IsNotSupported());
  REQUIRE(EndStateOf(status) == EndState::kIncompatible);
}

TEST_CASE("Every frame type has a name of its own", "[format]") {
  std::set<std::string> names;
  for (int value = 0; value < 256; ++value) {
    const uint8_t type = static_cast<uint8_t>(value);
    const std::string name = FrameTypeName(static_cast<FrameType>(type));
    REQUIRE(IsKnownFrameType(type) == (name != "unknown"));
    if (IsKnownFrameType(type)) {
      REQUIRE(names.insert(name).second);
    }
  }
  REQUIRE(names.size() == SampleFrames().size());
}

}  // namespace sstferry::frame_test
