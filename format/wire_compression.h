// Payload of a ChunkData frame with the flag kFrameFlagZstd. Normative text:
// format/FORMAT.md, "Compressed chunk data"; keep both in step.
//
//   offset  size  field      value
//   0       4     raw_bytes  1 to kMaxPayloadBytes
//   4       8     digest     XXH3-64 of the raw bytes
//   12      ...   zstd       one zstd frame, up to the payload's end, whose
//                            header has raw_bytes as its content size
//
// The sender computes the digest before compression, and the receiver compares
// it after decompression; this detects errors of zstd or of memory on either
// side. The digest is inside the frame's payload, so the digests of the frame
// and the chunk also cover the raw bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

inline constexpr size_t kCompressedHeaderBytes = 12;

// Compresses the payloads of ChunkData frames.
//
// Ownership: owns one zstd context and one buffer of kMaxPayloadBytes. The
//   first call makes both, later calls reuse them.
// Threads:   one.
class WireCompressor {
 public:
  // `level`: 1 to kMaxCompressionLevel.
  explicit WireCompressor(int level);
  ~WireCompressor();
  WireCompressor(const WireCompressor&) = delete;
  WireCompressor& operator=(const WireCompressor&) = delete;

  // Compresses `raw`, which has 1 to kMaxPayloadBytes. Returns true if the
  // result with its header fits into max_bytes. Then *payload is valid until
  // the next call. Returns false if it does not fit, or if memory ran out. Then
  // the caller sends the raw bytes.
  bool Compress(const rocksdb::Slice& raw, size_t max_bytes,
                rocksdb::Slice* payload);

  // Returns the memory of the zstd context in bytes; 0 before the first call.
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

// Parses a compressed payload. Returns Corruption if it is too short, if
// raw_bytes is out of bounds, or if the other bytes are not exactly one zstd
// frame of this content size. Rejects skippable frames and frames of zstd
// before 1.0, so the decoders of such frames never run.
[[nodiscard]] rocksdb::Status ParseCompressedPayload(
    const rocksdb::Slice& payload, CompressedPayload* out);

// Decompresses the payloads of ChunkData frames.
//
// Memory:  one zstd context, made by the first call. A frame is decompressed in
//   one pass into the caller's memory. So zstd allocates no window, even if a
//   frame announces a large one.
// Threads: one.
class WireDecompressor {
 public:
  WireDecompressor();
  ~WireDecompressor();
  WireDecompressor(const WireDecompressor&) = delete;
  WireDecompressor& operator=(const WireDecompressor&) = delete;

  // Writes payload.raw_bytes bytes to `out`, which must have room for them.
  // After an error, the contents of `out` are unspecified. Returns Corruption
  // if the frame is damaged, has another size than raw_bytes, or has a
  // different digest.
  [[nodiscard]] rocksdb::Status Decompress(const CompressedPayload& payload,
                                           char* out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sstferry
