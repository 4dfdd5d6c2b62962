#include "format/stream_frame.h"

#include <cstring>
#include <string>

#include "format/coding.h"
#include "format/end_state.h"
#include "format/limits.h"
#include "format/printable.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

constexpr char kStreamMagic[] = "SFYSTRM1";
constexpr size_t kStreamMagicBytes = 8;

struct Bounds {
  uint64_t min;
  uint64_t max;
};

Bounds ValueBounds(StreamFrameKind kind) {
  switch (kind) {
    case StreamFrameKind::kData:
      return {1, kMaxStreamDataBytes};
    case StreamFrameKind::kCredit:
      return {1, kMaxStreamCreditBytes};
    case StreamFrameKind::kOpen:
    case StreamFrameKind::kClose:
      break;
  }
  return {0, 0};
}

}  // namespace

void EncodeStreamHello(const StreamHello& hello, char* out) {
  memcpy(out, kStreamMagic, kStreamMagicBytes);
  EncodeFixed32(out + 8, hello.credit_bytes);
  EncodeFixed32(out + 12, 0);
}

Status DecodeStreamHello(const Slice& input, StreamHello* hello) {
  if (input.size() < kStreamHelloBytes) {
    return Status::Incomplete("stream hello: fewer than 16 bytes");
  }
  if (memcmp(input.data(), kStreamMagic, kStreamMagicBytes) != 0) {
    const std::string found(input.data(), kStreamMagicBytes);
    return MakeStatus(EndState::kCorrupt, "stream hello: magic: expected " +
                                              std::string(kStreamMagic) +
                                              ", found \"" + Printable(found) +
                                              "\"");
  }
  Decoder decoder("stream hello",
                  Slice(input.data() + kStreamMagicBytes,
                        kStreamHelloBytes - kStreamMagicBytes),
                  kStreamMagicBytes);
  StreamHello read;
  read.credit_bytes = static_cast<uint32_t>(decoder.Bounded(
      "credit_bytes", 4, kMinStreamCreditBytes, kMaxStreamCreditBytes));
  decoder.Bounded("reserved", 4, 0, 0);
  RETURN_IF_ERROR(decoder.Finish());
  *hello = read;
  return Status::OK();
}

void EncodeStreamFrame(const StreamFrame& frame, char* out) {
  memset(out, 0, kStreamFrameHeaderBytes);
  out[0] = static_cast<char>(frame.kind);
  EncodeFixed32(out + 4, frame.channel);
  EncodeFixed32(out + 8, frame.value);
}

Status DecodeStreamFrame(const Slice& input, StreamFrame* frame) {
  if (input.size() < kStreamFrameHeaderBytes) {
    return Status::Incomplete("stream frame: fewer than 12 bytes");
  }
  Decoder decoder("stream frame", Slice(input.data(), kStreamFrameHeaderBytes));
  StreamFrame read;
  read.kind = static_cast<StreamFrameKind>(
      decoder.Bounded("kind", 1, static_cast<uint64_t>(StreamFrameKind::kOpen),
                      static_cast<uint64_t>(StreamFrameKind::kClose)));
  decoder.Bounded("reserved", 1, 0, 0);
  decoder.Bounded("reserved", 2, 0, 0);
  read.channel =
      static_cast<uint32_t>(decoder.Bounded("channel", 4, 1, UINT32_MAX));
  const Bounds bounds = ValueBounds(read.kind);
  read.value = static_cast<uint32_t>(
      decoder.Bounded("value", 4, bounds.min, bounds.max));
  RETURN_IF_ERROR(decoder.Finish());
  *frame = read;
  return Status::OK();
}

}  // namespace sstferry
