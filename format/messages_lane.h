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
  // The last key that the target has received of a resumed part. The source
  // continues after this key; absent: it starts at the part's first key. The
  // ordinal of the next chunk is received.chunks.
  std::optional<std::string> after;
  Totals received;
  // Number of bytes that the target already has of an incomplete unit. The
  // source continues after these bytes.
  uint64_t open_bytes = 0;
  // Size in bytes at which the source ends chunks of this part; 0: the
  // transfer's chunk size. A target requests a smaller size if its connections
  // broke before a chunk was complete.
  uint64_t chunk_bytes = 0;
  friend bool operator==(const PartRequest&, const PartRequest&) = default;
};

struct ChunkBegin {
  static constexpr char kName[] = "ChunkBegin";

  uint32_t part_id = 0;
  uint32_t ordinal = 0;  // index of the chunk in its part: 0, 1, ...
  PartKind kind = PartKind::kRebuilt;
  uint64_t file_bytes = 0;  // 0: unknown (the chunk is being built)
  // Offset of the first byte that follows. For a unit, this is open_bytes of
  // the request; otherwise it is 0.
  uint64_t first_byte = 0;
  friend bool operator==(const ChunkBegin&, const ChunkBegin&) = default;
};

// Acknowledges a chunk. The target sends this message once for each chunk, in
// order, after the target has checked and accepted the chunk. The message does
// not say that the chunk is durable. If a connected target acknowledges no
// chunk for too long, the source interrupts the transfer (kTooSlow).
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
  // First and last user key of the file.
  std::string smallest;
  std::string largest;
  // ChunkDigest over the ChunkData frames since the ChunkBegin.
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

// Requests the digest of a clone's unit. The answer is a DigestReply without
// entries.
struct UnitDigestRequest {
  static constexpr char kName[] = "UnitDigestRequest";

  uint32_t part_id = 0;
  friend bool operator==(const UnitDigestRequest&,
                         const UnitDigestRequest&) = default;
};

// Requests the digests of a piece of a clone's file. The target sends it before
// it requests the units in the piece. If the offset is 0 and the file is a
// table or blob file, the source first checks the file by its own checksums. A
// request for 0 bytes asks only for this check.
struct FileDigestRequest {
  static constexpr char kName[] = "FileDigestRequest";

  uint32_t file = 0;  // index in the list of CloneFiles
  uint64_t offset = 0;
  uint64_t bytes = 0;
  friend bool operator==(const FileDigestRequest&,
                         const FileDigestRequest&) = default;
};

struct FileDigestReply {
  static constexpr char kName[] = "FileDigestReply";

  Sha256Digest sha256{};  // SHA-256 of the piece
  // Digests of the units that begin in the piece, in order. The last unit may
  // extend past the piece.
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

// Requests one page of the keys in an interval, each with a digest of its
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

// Returns the encoded size in bytes of the item in an EntriesReply payload.
size_t EncodedBytes(const EntryDigest& item);

struct EntriesReply {
  static constexpr char kName[] = "EntriesReply";

  std::vector<EntryDigest> entries;
  bool complete = false;  // no more entries in the interval
  friend bool operator==(const EntriesReply&, const EntriesReply&) = default;
};

}  // namespace sstferry
