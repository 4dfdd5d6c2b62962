// Digests: wraps XXH3 in this project's own types, so that no other header
// includes xxHash.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "format/byte_source.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

struct Digest128 {
  uint64_t high = 0;
  uint64_t low = 0;
  friend bool operator==(const Digest128&, const Digest128&) = default;
};

// Returns 32 lower-case hex digits, high half first.
std::string ToHex(const Digest128& digest);

// A SHA-256 digest. Object stores compare it with the uploaded bytes
// (pipeline/base/sha256.h).
using Sha256Digest = std::array<uint8_t, 32>;

uint64_t Digest64(const rocksdb::Slice& data, uint64_t seed = 0);
Digest128 DigestOf(const rocksdb::Slice& data);

// Computes the XXH3-64 of bytes that arrive in parts.
class Digest64Stream {
 public:
  explicit Digest64Stream(uint64_t seed);
  ~Digest64Stream();
  Digest64Stream(const Digest64Stream&) = delete;
  Digest64Stream& operator=(const Digest64Stream&) = delete;
  void Add(const rocksdb::Slice& data);
  uint64_t Finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Computes DigestOf() of bytes that arrive in parts.
class Digest128Stream {
 public:
  Digest128Stream();
  ~Digest128Stream();
  Digest128Stream(const Digest128Stream&) = delete;
  Digest128Stream& operator=(const Digest128Stream&) = delete;
  void Add(const rocksdb::Slice& data);
  Digest128 Finish() const;
  // Returns a copy that has consumed the same bytes.
  std::unique_ptr<Digest128Stream> Copy() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Adds the bytes [begin, end) of `source` to `digest`.
[[nodiscard]] rocksdb::Status AddToDigest(const ByteSource& source,
                                          uint64_t begin, uint64_t end,
                                          Digest128Stream* digest);

// Computes the digest of a chunk: XXH3-128 over the digests of the chunk's
// ChunkData frames, in order, 8 bytes each, little-endian. Because a frame's
// digest is used, each side hashes each byte only once.
class ChunkDigest {
 public:
  ChunkDigest();
  ~ChunkDigest();
  ChunkDigest(ChunkDigest&&) noexcept;
  ChunkDigest& operator=(ChunkDigest&&) noexcept;
  void AddFrame(uint64_t frame_digest);
  Digest128 Finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Computes the chain digest of a part: XXH3-128 over the digests of its chunks
// in order, 16 bytes each (low half, high half, little-endian).
class PartDigest {
 public:
  void AddChunk(const Digest128& chunk);
  Digest128 Finish() const { return chain_.Finish(); }

 private:
  ChunkDigest chain_;
};

// Computes the content digest of an interval: XXH3-128 over all entries in key
// order, each as fixed32 key length, fixed32 value length, key, value. Two
// intervals with the same digest and entry count have the same entries; block
// layout, compression and sequence numbers do not matter.
// For a wide-column entity, the value consists of fixed32 name length, fixed32
// value length, name and value of each column, and kEntityMark is set in the
// value length.
class ContentDigest {
 public:
  static constexpr uint32_t kEntityMark = 1u << 31;

  ContentDigest();
  ~ContentDigest();
  ContentDigest(ContentDigest&&) noexcept;
  ContentDigest& operator=(ContentDigest&&) noexcept;

  void Add(const rocksdb::Slice& key, const rocksdb::Slice& value,
           bool is_entity = false);
  Digest128 Finish() const;
  uint64_t entries() const { return entries_; }
  uint64_t key_value_bytes() const { return key_value_bytes_; }

 private:
  void Append(const rocksdb::Slice& data);

  struct State;  // streaming hash and a small buffer
  std::unique_ptr<State> state_;
  uint64_t entries_ = 0;
  uint64_t key_value_bytes_ = 0;
};

}  // namespace sstferry
