// A segment of an archive's log: what a source's WALs got while a follower put
// it there, between two sets and behind them. Normative text: format/FORMAT.md,
// "Archive".
//
//   object:  head     a file of format/sealed_file.h, LogHead
//            payload  bytes of WALs, whole records, one WAL behind the other;
//                     of a sealed segment in chunks, as the file of a sealed set
//
// Heads chain: each has the SHA-256 of the one before, and the digest of its own
// payload. So the heads alone prove what the log is, and a payload proves itself.
// The head of a sealed segment also has a code over all of it, which only its key
// makes.
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
// A payload ends behind the round that takes it above --segment, or earlier.
inline constexpr uint64_t kMaxSegmentBytes = 256ull << 20;
inline constexpr uint32_t kMaxSegmentWals = 1u << 12;
inline constexpr uint32_t kMaxSegmentMoments = 1u << 14;

// Bytes of one WAL in a payload. The first ones continue the WAL where the
// segment before ended; each later WAL begins at its byte 0.
struct LogWal {
  uint64_t wal_number = 0;
  uint64_t bytes = 0;
  friend bool operator==(const LogWal&, const LogWal&) = default;
};

// Says what had been read at some time.
struct LogMoment {
  uint64_t micros = 0;    // of the follower's clock; they ascend
  uint64_t bytes = 0;     // of the payload: whole records
  uint64_t sequence = 0;  // of the source behind them; 0: not known
  friend bool operator==(const LogMoment&, const LogMoment&) = default;
};

// Where a segment begins: the cut that the log began with, by its MANIFEST, and a
// place in the WALs.
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

  LogKey key;  // as its name says
  // The segment before, whose number is one less: of which lineage it is, and
  // the SHA-256 of its head. Zeros: a log begins here.
  SetId previous_lineage{};
  Sha256Digest previous{};
  LogBegin begin;
  FollowJudged judged;  // of that MANIFEST, for whoever has all of the payload
  // Not kNone: the log ends here, for this reason. The rest is for people.
  CutReason ended = CutReason::kNone;
  std::string note;
  std::string host;      // of the follower
  std::string software;
  std::vector<LogWal> wals;        // numbers ascend; they fill the payload
  std::vector<LogMoment> moments;  // of the newest, bytes is all of the payload
  Digest128 payload;  // as it is in the object
  // The payload is sealed, and so is the head, in which the code itself counts as
  // zeros.
  bool is_sealed = false;
  SealKeyId key_id{};
  SealSalt salt{};
  Sha256Digest seal{};
  // The history that it belongs to: the database, and XXH3-128 over the WAL in which the
  // payload ends, from its begin to there. An older head does not tell: both are
  // zeros, and nothing proves what continues it.
  std::string database_id;
  Digest128 wal{};
  uint64_t payload_bytes() const;
  // Returns the size of the payload in the object.
  uint64_t stored_bytes() const;
  // Returns where the payload ends in the WALs, with the cut of `begin`.
  LogBegin end() const;
  // Returns the position behind it; without an id, none that equals another.
  FollowPosition position() const;
  // Returns the newest sequence that is known; 0: none.
  uint64_t last_sequence() const;
  friend bool operator==(const LogHead&, const LogHead&) = default;
};

// Encodes the fields of a head alone.
std::string EncodeLogRecord(const LogHead& head);
// Appends a whole head. REQUIRES: within all limits.
void EncodeLogHead(const LogHead& head, std::string* out);
// Returns the size of the head with which an object begins; 0: it is none, by
// its first kSealedHeaderBytes.
uint64_t LogHeadBytes(const rocksdb::Slice& object);
// Decodes a head, exactly one whole, of the segment `key`.
//   kCorrupt  damage, or another segment's
[[nodiscard]] rocksdb::Status DecodeLogHead(const rocksdb::Slice& bytes,
                                            const LogKey& key, LogHead* head);

}  // namespace sstferry
