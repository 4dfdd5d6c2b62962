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
  static constexpr char kName[] = "PartRequest";

  uint32_t part_id = 0;
  // Resume: the key after which the source continues, instead of at the part's
  // begin. The target has received everything up to it. The next chunk's
  // ordinal is received.chunks.
  std::optional<std::string> after;
  Totals received;
  // Counts the bytes of a unit that the target has: the source resumes there.
  uint64_t open_bytes = 0;
  // Not 0: chunks end at so many bytes, earlier than the transfer's. For a
  // lane whose connections break before a chunk is whole.
  uint64_t chunk_bytes = 0;
  // A delta was asked for, and the target has its chunk: the source sends the
  // end of the part.
  bool of_delta = false;
  friend bool operator==(const PartRequest&, const PartRequest&) = default;
};

struct ChunkBegin {
  static constexpr char kName[] = "ChunkBegin";

  uint32_t part_id = 0;
  uint32_t ordinal = 0;  // position of the chunk in its part: 0, 1, ...
  PartKind kind = PartKind::kRebuilt;
  uint64_t file_bytes = 0;  // 0: not yet known (the chunk is being built)
  // Offset of the first byte that follows: of a unit, the request's open_bytes;
  // else 0.
  uint64_t first_byte = 0;
  friend bool operator==(const ChunkBegin&, const ChunkBegin&) = default;
};

// Acknowledges a chunk that the target has handed over: each one that was sent
// is acknowledged once, in their order. So the source sees a target that takes
// nothing although it answers.
struct ChunkAck {
  static constexpr char kName[] = "ChunkAck";

  uint32_t part_id = 0;
  uint32_t ordinal = 0;
  friend bool operator==(const ChunkAck&, const ChunkAck&) = default;
};

struct ChunkEnd {
  static constexpr char kName[] = "ChunkEnd";

  uint32_t part_id = 0;
  uint32_t ordinal = 0;
  uint64_t file_bytes = 0;
  uint64_t entries = 0;
  uint64_t key_bytes = 0;
  uint64_t value_bytes = 0;
  // The first and the last user key of the file.
  std::string smallest;
  std::string largest;
  // ChunkDigest over the ChunkData frames since its ChunkBegin.
  Digest128 digest;
  friend bool operator==(const ChunkEnd&, const ChunkEnd&) = default;
};

struct PartEnd {
  static constexpr char kName[] = "PartEnd";

  uint32_t part_id = 0;
  Totals totals;
  // XXH3-128 over the chunks' digests in order.
  Digest128 chain;
  friend bool operator==(const PartEnd&, const PartEnd&) = default;
};

struct DigestRequest {
  static constexpr char kName[] = "DigestRequest";

  uint32_t family = 0;
  KeyInterval interval;
  friend bool operator==(const DigestRequest&, const DigestRequest&) = default;
};

// Asks for the digest of the bytes of a clone's unit: a DigestReply without
// entries.
struct UnitDigestRequest {
  static constexpr char kName[] = "UnitDigestRequest";

  uint32_t part_id = 0;
  friend bool operator==(const UnitDigestRequest&,
                         const UnitDigestRequest&) = default;
};

// Asks for digests of a piece of a clone's file, before its units are asked for.
// With offset 0 the source first checks a table or a blob file by its own
// checksums; so a piece of no bytes asks for that alone.
struct FileDigestRequest {
  static constexpr char kName[] = "FileDigestRequest";

  uint32_t file = 0;  // in the list of CloneFiles
  uint64_t offset = 0;
  uint64_t bytes = 0;
  friend bool operator==(const FileDigestRequest&,
                         const FileDigestRequest&) = default;
};

struct FileDigestReply {
  static constexpr char kName[] = "FileDigestReply";

  Sha256Digest sha256{};  // of the piece
  // Digests the units that begin in it, in order; the last may end behind it.
  std::vector<Digest128> units;
  friend bool operator==(const FileDigestReply&,
                         const FileDigestReply&) = default;
};

struct DigestReply {
  static constexpr char kName[] = "DigestReply";

  uint64_t entries = 0;
  uint64_t key_value_bytes = 0;
  Digest128 content;
  friend bool operator==(const DigestReply&, const DigestReply&) = default;
};

// Asks for one page of the keys of an interval, each with a digest of its
// value. `after` is the last key of the previous page.
struct EntriesRequest {
  static constexpr char kName[] = "EntriesRequest";

  uint32_t family = 0;
  KeyInterval interval;
  std::optional<std::string> after;
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
  static constexpr char kName[] = "EntriesReply";

  std::vector<EntryDigest> entries;
  bool complete = false;  // no further entry in the interval
  friend bool operator==(const EntriesReply&, const EntriesReply&) = default;
};

}  // namespace sstferry
