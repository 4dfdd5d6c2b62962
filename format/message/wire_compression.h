// The payload of a ChunkData frame whose flag kFrameFlagZstd is set. Normative
// text: format/FORMAT.md, "Compressed chunk data"; keep both in step.
//
//   offset  size  field      value
//   0       4     raw_bytes  1 to kMaxPayloadBytes
//   4       8     digest     XXH3-64 of the raw bytes
//   12      ...   zstd       one zstd frame, up to the payload's end, whose
//                            header tells raw_bytes as its content size
//
// The digest is made before compression and compared after decompression: what
// zstd, or memory, does to the bytes on either side is found. It lies inside
// the frame's payload, so that the frame's own digest, and with it that of the
// chunk, covers the raw bytes as well.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

inline constexpr size_t kCompressedHeaderBytes = 12;

// Ownership: owns one zstd context and one buffer of kMaxPayloadBytes, both
//   made by the first call and used again by every later one.
// Threads:   one.
class WireCompressor {
 public:
  // 1 to kMaxCompressionLevel.
  explicit WireCompressor(int level);
  ~WireCompressor();
  WireCompressor(const WireCompressor&) = delete;
  WireCompressor& operator=(const WireCompressor&) = delete;

  // True when `raw` (1 to kMaxPayloadBytes) fits compressed, header and all,
  // into max_bytes; *payload then holds it until the next call. False when it
  // does not, or when there is no memory: the raw bytes are always as good.
  bool Compress(const rocksdb::Slice& raw, size_t max_bytes,
                rocksdb::Slice* payload);

  // Of the context; 0 before the first call.
  size_t memory_bytes() const;

 private:
  struct State;
  bool Prepare();

  const int level_;
  std::unique_ptr<State> state_;
};

struct CompressedPayload {
  uint32_t raw_bytes = 0;
  uint64_t digest = 0;
  rocksdb::Slice zstd;  // inside the payload
};

// Corruption: too short, raw_bytes out of bounds, or what follows is not one
// zstd frame of that content size and nothing else. Frames of zstd before 1.0
// and skippable frames are refused: no decoder for them is ever reached.
[[nodiscard]] rocksdb::Status ParseCompressedPayload(
    const rocksdb::Slice& payload, CompressedPayload* out);

// Memory:  one zstd context, made by the first call. Frames are decompressed in
//   one pass into the caller's memory, so a window is never allocated, whatever
//   size of it a frame announces.
// Threads: one.
class WireDecompressor {
 public:
  WireDecompressor();
  ~WireDecompressor();
  WireDecompressor(const WireDecompressor&) = delete;
  WireDecompressor& operator=(const WireDecompressor&) = delete;

  // Writes payload.raw_bytes bytes to `out`, which has room for them; after an
  // error what stands there means nothing.
  // Corruption: damaged, not exactly raw_bytes, or not what digest says.
  [[nodiscard]] rocksdb::Status Decompress(const CompressedPayload& payload,
                                           char* out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sstferry
