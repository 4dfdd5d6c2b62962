// A segment of an archive's log: the bytes that a source's WALs got between two
// sets and after the last one, as a follower put them. Normative text:
// format/FORMAT.md, "Archive".
//
//   object:  head     a file of format/sealed_file.h, LogHead
//            payload  bytes of WALs, whole records, one WAL after the other;
//                     in a sealed segment in chunks, as in a sealed set
//
// Heads form a chain: each stores the SHA-256 of the previous head and the
// digest of its own payload. So the heads alone prove the order and content of
// the log, and each payload can be checked with its head. The head of a sealed
// segment also has an authentication code over the whole head, which only the
// holder of the key can make.
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
// A payload ends after the round that makes it larger than --segment, or
// earlier.
inline constexpr uint64_t kMaxSegmentBytes = 256ull << 20;
inline constexpr uint32_t kMaxSegmentWals = 1u << 12;
inline constexpr uint32_t kMaxSegmentMoments = 1u << 14;

// Bytes of one WAL in a payload. The first entry continues its WAL at the end
// of the previous segment; each later WAL begins at its byte 0.
struct LogWal {
  uint64_t wal_number = 0;
  uint64_t bytes = 0;
  friend bool operator==(const LogWal&, const LogWal&) = default;
};

// Maps a time to the bytes that had been read by then.
struct LogMoment {
  uint64_t micros = 0;    // follower's clock; ascending
  uint64_t bytes = 0;     // of the payload, up to a record's end
  uint64_t sequence = 0;  // the source's, at that byte; 0: not known
  friend bool operator==(const LogMoment&, const LogMoment&) = default;
};

// Start of a segment: the cut with which the log began, given by its MANIFEST,
// and a position in the WALs.
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

  LogKey key;  // equal to the object's name
  // Link to the previous segment (number one less): its lineage, and the
  // SHA-256 of its head. Zeros: a log begins here.
  SetId previous_lineage{};
  Sha256Digest previous{};
  LogBegin begin;
  // Judged bytes of that MANIFEST, for a reader that has the whole payload.
  FollowJudged judged;
  // If not kNone, the reason why the log ends with this segment. The note is
  // for people.
  CutReason ended = CutReason::kNone;
  std::string note;
  std::string host;      // the follower's
  std::string software;
  std::vector<LogWal> wals;        // numbers ascend; all of the payload
  std::vector<LogMoment> moments;  // the newest one covers all of the payload
  Digest128 payload;  // digest of the payload as stored in the object
  // The payload is sealed. The head is authenticated with `seal`, a code over
  // the head with the bytes of the code itself set to zero.
  bool is_sealed = false;
  SealKeyId key_id{};
  SealSalt salt{};
  Sha256Digest seal{};
  // The source's history: the database, and XXH3-128 over the WAL in which the
  // payload ends, from its first byte to there. Heads of older releases have
  // zeros in both; then nothing proves that a later segment continues this one.
  std::string database_id;
  Digest128 wal{};
  uint64_t payload_bytes() const;
  // Returns the size of the payload in the object, in bytes.
  uint64_t stored_bytes() const;
  // Returns the payload's end as a position in the WALs, with the cut of
  // `begin`.
  LogBegin end() const;
  // Returns the position after the payload. Without a database id it equals no
  // other position.
  FollowPosition position() const;
  // Returns the newest known sequence number; 0: none.
  uint64_t last_sequence() const;
  friend bool operator==(const LogHead&, const LogHead&) = default;
};

// Encodes only the fields of a head.
std::string EncodeLogRecord(const LogHead& head);
// Appends a whole head. REQUIRES: all fields are within their limits.
void EncodeLogHead(const LogHead& head, std::string* out);
// Returns the size of the head at the start of an object, by the object's first
// kSealedHeaderBytes; 0: the object does not begin with a head.
uint64_t LogHeadBytes(const rocksdb::Slice& object);
// Decodes exactly one whole head, of the segment `key`.
//   kCorrupt  damaged, or the head of another segment
[[nodiscard]] rocksdb::Status DecodeLogHead(const rocksdb::Slice& bytes,
                                            const LogKey& key, LogHead* head);

}  // namespace sstferry
