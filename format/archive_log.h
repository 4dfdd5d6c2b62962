// A segment of an archive's log. A follower stores in it the WAL bytes that the
// source wrote between two sets, or after the last set. Normative text:
// format/FORMAT.md, "Archive".
//
//   object:  head     a file of format/sealed_file.h, LogHead
//            payload  WAL bytes, complete records, one WAL after the other;
//                     a sealed segment stores them as encrypted chunks, like
//                     a sealed set
//
// The heads form a chain: each head contains the SHA-256 of the previous head
// and the digest of its own payload. So the heads alone prove the order and
// content of the log. The head of a sealed segment also contains an
// authentication code over the complete head. Only a holder of the key can
// compute this code.
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
// Maximum size of a payload. A follower normally ends a payload earlier: after
// the first round (an answer of the source) that makes it larger than
// --segment.
inline constexpr uint64_t kMaxSegmentBytes = 256ull << 20;
inline constexpr uint32_t kMaxSegmentWals = 1u << 12;
inline constexpr uint32_t kMaxSegmentMoments = 1u << 14;

// The bytes of one WAL in a payload. If the first WAL is the one in which the
// previous segment ended, its bytes continue there. Every other WAL begins at
// offset 0.
struct LogWal {
  uint64_t wal_number = 0;
  uint64_t bytes = 0;
  friend bool operator==(const LogWal&, const LogWal&) = default;
};

// Maps a time to the number of payload bytes that the follower had at this
// time.
struct LogMoment {
  uint64_t micros = 0;    // by the follower's clock; ascending
  uint64_t bytes = 0;     // payload bytes at this time; end with a record
  uint64_t sequence = 0;  // source's sequence after these bytes; 0: unknown
  friend bool operator==(const LogMoment&, const LogMoment&) = default;
};

// Position at which a segment begins: the MANIFEST of the cut with which the
// log began, and a position in the WALs. (A cut is a clone of the source at one
// moment.)
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
  // Lineage of the previous segment, which has the number key.number - 1, and
  // the SHA-256 of its head. Both are zeros in the first segment of a log.
  SetId previous_lineage{};
  Sha256Digest previous{};
  LogBegin begin;
  // How much of the MANIFEST in `begin` the source had checked for records that
  // require a cut. Valid only for a reader that has the complete payload.
  FollowJudged judged;
  // Reason why the log ends with this segment; kNone: the log continues. `note`
  // describes the reason for people.
  CutReason ended = CutReason::kNone;
  std::string note;
  std::string host;      // name of the follower's machine
  std::string software;
  std::vector<LogWal> wals;  // in ascending order; their bytes are the payload
  std::vector<LogMoment> moments;  // the last moment has the complete payload
  Digest128 payload;  // digest of the payload as stored (sealed)
  // True if the payload is sealed (encrypted). Then `seal` authenticates the
  // head: it is a code over the head in which the bytes of `seal` are zero.
  bool is_sealed = false;
  SealKeyId key_id{};
  SealSalt salt{};
  Sha256Digest seal{};
  // Identity of the source's history: the database's id, and the XXH3-128 of
  // the WAL in which the payload ends, from its first byte to the payload's
  // end. Heads of older releases have zeros. After such a head, nothing proves
  // that a later segment continues the log.
  std::string database_id;
  Digest128 wal{};
  uint64_t payload_bytes() const;
  // Returns the stored size of the payload, in bytes.
  uint64_t stored_bytes() const;
  // Returns the position in the WALs at which the payload ends. The MANIFEST in
  // the result is the one in `begin`.
  LogBegin end() const;
  // Returns the position after the payload. If the head has no database id,
  // this position is not equal to the position of any database.
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
