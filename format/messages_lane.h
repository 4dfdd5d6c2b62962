// The messages of lane connections. See format/messages.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/messages_any.h"
#include "format/part.h"

namespace sstferry {

struct PartRequest {
  uint32_t part_id = 0;
  // Resume: the key after which the source continues, instead of at the part's
  // begin. The target has received everything up to it. The next chunk's
  // ordinal is held.chunks.
  std::optional<std::string> after;
  Totals received;
  // Bytes of that next chunk that the target has received, and the number of
  // data frames in which they arrived.
  uint64_t open_bytes = 0;
  uint64_t open_frames = 0;
  // A delta was asked for, and that chunk, or the last one, belongs to it. The
  // source sends the rest; without it, the end of the part without a chunk.
  bool of_delta = false;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const PartRequest&, const PartRequest&) = default;
};

struct ChunkBegin {
  uint32_t part_id = 0;
  uint32_t ordinal = 0;  // position of the chunk in its part: 0, 1, ...
  PartKind kind = PartKind::kRebuilt;
  uint64_t file_bytes = 0;  // 0: not yet known (the chunk is being built)
  // Offset of the first byte that follows: the request's open_bytes, or 0 if
  // the chunk is sent from its start.
  uint64_t first_byte = 0;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const ChunkBegin&, const ChunkBegin&) = default;
};

// Acknowledges all bytes before `bytes`: the target will not ask for them
// again, and the source drops them from its resend buffer. Byte 0 of the next
// chunk acknowledges a whole chunk.
struct ChunkAck {
  uint32_t part_id = 0;
  uint32_t ordinal = 0;
  uint64_t bytes = 0;  // of the chunk's file
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const ChunkAck&, const ChunkAck&) = default;
};

struct ChunkEnd {
  uint32_t part_id = 0;
  uint32_t ordinal = 0;
  uint64_t file_bytes = 0;
  uint64_t entries = 0;
  uint64_t key_bytes = 0;
  uint64_t value_bytes = 0;
  // The first and the last user key of the file.
  std::string smallest;
  std::string largest;
  Digest128 digest;  // ChunkDigest over its ChunkData frames
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const ChunkEnd&, const ChunkEnd&) = default;
};

struct PartEnd {
  uint32_t part_id = 0;
  Totals totals;
  // XXH3-128 over the chunks' digests in order.
  Digest128 chain;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const PartEnd&, const PartEnd&) = default;
};

struct DigestRequest {
  uint32_t family = 0;
  KeyInterval interval;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const DigestRequest&, const DigestRequest&) = default;
};

// Asks for the digest of the bytes of a clone's unit: a DigestReply without
// entries.
struct UnitDigestRequest {
  uint32_t part_id = 0;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const UnitDigestRequest&,
                         const UnitDigestRequest&) = default;
};

struct DigestReply {
  uint64_t entries = 0;
  uint64_t key_value_bytes = 0;
  Digest128 content;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const DigestReply&, const DigestReply&) = default;
};

// Asks for one page of the keys of an interval, each with a digest of its
// value. `after` is the last key of the previous page.
struct EntriesRequest {
  uint32_t family = 0;
  KeyInterval interval;
  std::optional<std::string> after;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const EntriesRequest&,
                         const EntriesRequest&) = default;
};

struct EntryDigest {
  std::string key;
  uint64_t value_bytes = 0;
  Digest128 value;
  friend bool operator==(const EntryDigest&, const EntryDigest&) = default;
};

// Encoded size in bytes of the item inside an EntriesReply payload.
size_t EncodedBytes(const EntryDigest& item);

struct EntriesReply {
  std::vector<EntryDigest> entries;
  bool complete = false;  // no further entry in the interval
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const EntriesReply&, const EntriesReply&) = default;
};

}  // namespace sstferry
