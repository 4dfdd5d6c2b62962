// The messages of lane connections. See format/message/messages.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/message/messages_any.h"

namespace sstferry {

struct RangeRequest {
  uint32_t range_id = 0;
  // Resume: go on after this key instead of at the range's begin; what came
  // before it, the target holds. The next chunk's ordinal is held.chunks.
  std::optional<std::string> after;
  Totals held;
  // Of that chunk the target holds so many bytes, which came in so many frames
  // of data.
  uint64_t open_bytes = 0;
  uint64_t open_frames = 0;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const RangeRequest&, const RangeRequest&) = default;
};

enum class ChunkKind : uint8_t { kRebuilt = 0, kCarried = 1 };

struct ChunkBegin {
  uint32_t range_id = 0;
  uint32_t ordinal = 0;  // of the chunk in its range: 0, 1, ...
  ChunkKind kind = ChunkKind::kRebuilt;
  uint64_t file_bytes = 0;  // 0: not known yet (being built)
  // Where its data goes on: the request's open_bytes, or 0 for a new start.
  uint64_t first_byte = 0;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const ChunkBegin&, const ChunkBegin&) = default;
};

// All before that byte is at the target to stay: its source keeps only what was
// not yet acknowledged. Byte 0 of the next chunk stands for a whole one.
struct ChunkAck {
  uint32_t range_id = 0;
  uint32_t ordinal = 0;
  uint64_t bytes = 0;  // of its file
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const ChunkAck&, const ChunkAck&) = default;
};

struct ChunkEnd {
  uint32_t range_id = 0;
  uint32_t ordinal = 0;
  uint64_t file_bytes = 0;
  uint64_t entries = 0;
  uint64_t key_bytes = 0;
  uint64_t value_bytes = 0;
  // User keys between which all of the file lies. Of a chunk that replaces an
  // interval: that interval, of which `largest` is a part unless the file
  // holds neither an entry nor a deletion of it.
  std::string smallest;
  std::string largest;
  bool clears = false;        // a range deletion over [smallest, largest)
  bool deletes_last = false;  // its last key, `largest`, is a deletion
  Digest128 digest;      // ChunkDigest over its ChunkData frames
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const ChunkEnd&, const ChunkEnd&) = default;
};

struct RangeEnd {
  uint32_t range_id = 0;
  Totals totals;
  // XXH3-128 over the chunks' digests in order: chains the range together.
  Digest128 chain;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const RangeEnd&, const RangeEnd&) = default;
};

struct DigestRequest {
  uint32_t family = 0;
  KeyInterval interval;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const DigestRequest&, const DigestRequest&) = default;
};

struct DigestReply {
  uint64_t entries = 0;
  uint64_t key_value_bytes = 0;
  Digest128 content;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const DigestReply&, const DigestReply&) = default;
};

// Asks for the keys of an interval with a digest of each value, one page at a
// time: `after` is the last key of the page before.
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

// Bytes the item takes inside an EntriesReply payload.
size_t EncodedBytes(const EntryDigest& item);

struct EntriesReply {
  std::vector<EntryDigest> entries;
  bool complete = false;  // no entry of the interval follows
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const EntriesReply&, const EntriesReply&) = default;
};

}  // namespace sstferry
