// One stream that carries several connections (its channels), such as ssh's
// standard input and output. All integers are little-endian. Normative text:
// format/FORMAT.md, "Stream"; keep both in step.
//
//   each direction begins with a hello:
//   offset  size  field          value
//   0       8     magic          53 46 59 53 54 52 4d 31 ("SFYSTRM1")
//   8       4     credit_bytes   kMinStreamCreditBytes to
//                                kMaxStreamCreditBytes
//   12      4     reserved       0
//
//   followed by frames:
//   0       1     kind           StreamFrameKind; unknown values are an error
//   1       3     reserved       0
//   4       4     channel        numbered from 1, in the order of Open frames
//   8       4     value          Data: payload bytes, 1 to kMaxStreamDataBytes
//                                Credit: bytes granted, 1 to
//                                kMaxStreamCreditBytes
//                                Open, Close: 0
//   12      ...   payload        only in Data
//
// Each side grants credit for each channel. Its hello grants the initial
// credit, its Credit frames add to it, and the peer's Data frames use it up. So
// if the reader of a channel is slow, the channel fills neither the reader's
// memory nor the stream.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

inline constexpr size_t kStreamHelloBytes = 16;
inline constexpr size_t kStreamFrameHeaderBytes = 12;

struct StreamHello {
  uint32_t credit_bytes = 0;  // initial credit of each channel
};

// Kinds of frames. The values never change.
enum class StreamFrameKind : uint8_t {
  kOpen = 1,    // the dialing side: the channel begins
  kData = 2,    // either: bytes of the channel
  kCredit = 3,  // either: the peer may send this many more bytes
  kClose = 4,   // either: the sender no longer sends or reads
};

struct StreamFrame {
  StreamFrameKind kind = StreamFrameKind::kOpen;
  uint32_t channel = 0;
  uint32_t value = 0;
};

// Writes a hello. REQUIRES: `out` has room for kStreamHelloBytes.
void EncodeStreamHello(const StreamHello& hello, char* out);
// Reads a hello.
// Incomplete   fewer than kStreamHelloBytes
// Corruption   another magic, a credit out of bounds, reserved bits
[[nodiscard]] rocksdb::Status DecodeStreamHello(const rocksdb::Slice& input,
                                                StreamHello* hello);

// Writes a header. REQUIRES: `out` has room for kStreamFrameHeaderBytes.
void EncodeStreamFrame(const StreamFrame& frame, char* out);
// Reads a header, without the payload.
// Incomplete   fewer than kStreamFrameHeaderBytes
// Corruption   an unknown kind, channel 0, a value out of bounds, reserved bits
[[nodiscard]] rocksdb::Status DecodeStreamFrame(const rocksdb::Slice& input,
                                                StreamFrame* frame);

}  // namespace sstferry
