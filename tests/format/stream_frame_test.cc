#include "format/stream_frame.h"

#include "format/limits.h"
#include "tests/format/samples.h"
#include "tests/support/annotate.h"
#include "tests/support/catch.h"

namespace sstferry::stream_frame_test {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

std::string EncodedFrame(const StreamFrame& frame) {
  std::string bytes(kStreamFrameHeaderBytes, '\0');
  EncodeStreamFrame(frame, bytes.data());
  return bytes;
}

}  // namespace

TEST_CASE("A stream's hello is decoded as it was encoded", "[format]") {
  for (const uint32_t credit :
       {kMinStreamCreditBytes, 1u << 20, kMaxStreamCreditBytes}) {
    std::string bytes(kStreamHelloBytes, '\0');
    EncodeStreamHello({credit}, bytes.data());
    StreamHello hello;
    REQUIRE_OK(DecodeStreamHello(bytes, &hello));
    REQUIRE(hello.credit_bytes == credit);
  }
}

TEST_CASE("A stream's frames are decoded as they were encoded", "[format]") {
  const std::vector<StreamFrame> frames = {
      {StreamFrameKind::kOpen, 1, 0},
      {StreamFrameKind::kData, UINT32_MAX, 1},
      {StreamFrameKind::kData, 7, kMaxStreamDataBytes},
      {StreamFrameKind::kCredit, 7, kMaxStreamCreditBytes},
      {StreamFrameKind::kClose, 7, 0}};
  for (const StreamFrame& frame : frames) {
    StreamFrame decoded;
    REQUIRE_OK(DecodeStreamFrame(EncodedFrame(frame), &decoded));
    REQUIRE(decoded.kind == frame.kind);
    REQUIRE(decoded.channel == frame.channel);
    REQUIRE(decoded.value == frame.value);
  }
}

TEST_CASE("A stream's frame out of its bounds is Corruption",
          "[format][corruption]") {
  const std::vector<StreamFrame> frames = {
      {StreamFrameKind::kOpen, 0, 0},
      {StreamFrameKind::kOpen, 1, 1},
      {StreamFrameKind::kClose, 1, 1},
      {StreamFrameKind::kData, 1, 0},
      {StreamFrameKind::kData, 1, kMaxStreamDataBytes + 1},
      {StreamFrameKind::kData, 1, UINT32_MAX},
      {StreamFrameKind::kCredit, 1, 0},
      {StreamFrameKind::kCredit, 1, kMaxStreamCreditBytes + 1},
      {static_cast<StreamFrameKind>(0), 1, 0},
      {static_cast<StreamFrameKind>(5), 1, 0}};
  for (const StreamFrame& frame : frames) {
    INFO(static_cast<int>(frame.kind)
         << " " << frame.channel << " " << frame.value);
    StreamFrame decoded;
    REQUIRE(DecodeStreamFrame(EncodedFrame(frame), &decoded).IsCorruption());
  }
}

TEST_CASE("A stream that ends inside a hello or a header is Incomplete",
          "[format]") {
  const std::string stream = SampleStream();
  StreamHello hello;
  for (size_t bytes = 0; bytes < kStreamHelloBytes; ++bytes) {
    REQUIRE(
        DecodeStreamHello(Slice(stream.data(), bytes), &hello).IsIncomplete());
  }
  StreamFrame frame;
  for (size_t bytes = 0; bytes < kStreamFrameHeaderBytes; ++bytes) {
    REQUIRE(DecodeStreamFrame(Slice(stream.data() + kStreamHelloBytes, bytes),
                              &frame)
                .IsIncomplete());
  }
}

TEST_CASE("Bits that a stream reserves must be 0", "[format][corruption]") {
  const std::string good = SampleStream();
  for (const size_t at : {size_t{12}, size_t{15}, kStreamHelloBytes + 1,
                          kStreamHelloBytes + 2, kStreamHelloBytes + 3}) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[at] ^= static_cast<char>(1 << bit);
      std::string text;
      INFO("byte " << at << " bit " << bit);
      REQUIRE(AnnotateStream(bad, &text).IsCorruption());
    }
  }
}

}  // namespace sstferry::stream_frame_test
