// A segment of an archive's log: the WAL bytes that a source wrote between two
// sets, or after the last set, as stored by a follower. Normative text:
// format/FORMAT.md, "Archive".
//
//   object:  head     a file of format/sealed_file.h, LogHead
//            payload  WAL bytes, complete records, one WAL after the other;
//                     in a sealed segment in chunks, as in a sealed set
//
// Heads form a chain: each stores the SHA-256 of the previous head and the
// digest of its own payload. So the heads alone prove the order and content of
// the log, and each payload can be checked with its head. The head of a sealed
// segment also has an authentication code over the complete head, which only
// the holder of the key can make.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/archive.h"
#include "format/archive_set.h"
#include "format/digest.h"
#include "format/messages_follow.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

inline constexpr uint64_t kMaxLogHeadBytes = 1u << 20;
// Maximum size. A payload normally ends after the round that makes it larger
// than --segment.
inline constexpr uint64_t kMaxSegmentBytes = 256ull << 20;
inline constexpr uint32_t kMaxSegmentWals = 1u << 12;
inline constexpr uint32_t kMaxSegmentMoments = 1u << 14;

// Bytes of one WAL in a payload. The first entry continues its WAL where the
// previous segment ended; each later WAL begins at offset 0.
struct LogWal {
  uint64_t wal_number = 0;
  uint64_t bytes = 0;
  friend bool operator==(const LogWal&, const LogWal&) = default;
};

// Maps a time to the number of bytes that had been read by then.
struct LogMoment {
  uint64_t micros = 0;    // by the follower's clock; ascending
  uint64_t bytes = 0;     // size of the payload up to the end of a record
  uint64_t sequence = 0;  // the source's number at this byte; 0: unknown
  friend bool operator==(const LogMoment&, const LogMoment&) = default;
};

// Start of a segment: the cut with which the log began, identified by its
// MANIFEST, and a position in the WALs.
struct LogBegin {
  uint64_t manifest_number = 0;
  uint64_t manifest_bytes = 0;
  Digest128 manifest{};
  uint64_t wal_number = 0;
  uint64_t wal_bytes = 0;
  friend bool operator==(const LogBegin&, const LogBegin&) = default;
};

struct LogHead {
  static constexpr char kName[] = "segment";

  LogKey key;  // equal to the object's key
  // Link to the previous segment (number - 1): its lineage, and the SHA-256 of
  // its head. Zeros: a log begins here.
  SetId previous_lineage{};
  Sha256Digest previous{};
  LogBegin begin;
  // The part of the MANIFEST in `begin` that the source had checked. Valid only
  // for a reader that has the complete payload.
  FollowJudged judged;
  // If not kNone, why the log ends with this segment. The note is for people.
  CutReason ended = CutReason::kNone;
  std::string note;
  std::string host;      // name of the follower's machine
  std::string software;
  std::vector<LogWal> wals;        // ascending numbers; covers the payload
  std::vector<LogMoment> moments;  // the last one covers the complete payload
  Digest128 payload;  // digest of the payload as stored (sealed)
  // The payload is sealed. `seal` authenticates the head: it is a code over the
  // head in which the bytes of `seal` are zero.
  bool is_sealed = false;
  SealKeyId key_id{};
  SealSalt salt{};
  Sha256Digest seal{};
  // The source's history: the database id, and XXH3-128 over the WAL in which
  // the payload ends, from its first byte to this end. Zeros in heads of older
  // releases; then nothing proves that a later segment continues this one.
  std::string database_id;
  Digest128 wal{};
  uint64_t payload_bytes() const;
  // Returns the stored size of the payload, in bytes.
  uint64_t stored_bytes() const;
  // Returns the end of the payload as a position in the WALs, with the cut of
  // `begin`.
  LogBegin end() const;
  // Returns the position after the payload. Without a database id it is not
  // equal to any other position.
  FollowPosition position() const;
  // Returns the newest known sequence number; 0: unknown.
  uint64_t last_sequence() const;
  friend bool operator==(const LogHead&, const LogHead&) = default;
};

// Encodes only the fields of a head.
std::string EncodeLogRecord(const LogHead& head);
// Appends a complete head. REQUIRES: all fields are within their limits.
void EncodeLogHead(const LogHead& head, std::string* out);
// Returns the size of the head at the start of an object, given the object's
// first kSealedHeaderBytes; 0 if the object does not begin with a head.
uint64_t LogHeadBytes(const rocksdb::Slice& object);
// Decodes exactly one complete head of the segment `key`.
//   kCorrupt  damaged, or the head of another segment
[[nodiscard]] rocksdb::Status DecodeLogHead(const rocksdb::Slice& bytes,
                                            const LogKey& key, LogHead* head);

}  // namespace sstferry
