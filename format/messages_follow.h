// Messages of the control connection by which a target follows a live source.
// See format/messages.h.
#pragma once

#include <cstdint>
#include <string>

#include "format/digest.h"
#include "format/limits.h"
#include "format/types.h"

namespace sstferry {

// Position that a target has reached, and the history to which the position
// belongs. A database that was recreated, or restored from an older copy, may
// have the same file numbers and the same MANIFEST. But its WALs have other
// bytes. All zero: the target has no data.
struct FollowPosition {
  // Database id of the source. An empty id is unknown and equal to no other id.
  std::string database_id;
  uint64_t manifest_number = 0;
  // Size of the MANIFEST's complete records at the cut with which the target
  // began.
  uint64_t cut_bytes = 0;
  // Number of MANIFEST bytes that a source has already checked for this target,
  // and their XXH3-128. A target with the WALs up to this position needs no cut
  // for any record between cut_bytes and manifest_bytes. So another process
  // that reads the source need not check these records again, even if it never
  // saw the WALs that were removed. Initially equal to cut_bytes.
  uint64_t manifest_bytes = 0;
  Digest128 manifest{};
  // The newest WAL of which the target has a record, the end of its complete
  // records, and the XXH3-128 of its bytes up to this end. If no WAL has a
  // record, this is the oldest WAL, with 0 bytes. A newer WAL without records
  // does not count, because it may exist before the previous WAL is complete
  // (manual_wal_flush, async_wal_precreate).
  uint64_t wal_number = 0;
  uint64_t wal_bytes = 0;
  Digest128 wal{};
  friend bool operator==(const FollowPosition&,
                         const FollowPosition&) = default;
};

// How much of its MANIFEST a source has checked, as in a FollowPosition. All
// zero: unknown.
struct FollowJudged {
  uint64_t manifest_bytes = 0;
  Digest128 manifest{};  // XXH3-128 over these bytes
  friend bool operator==(const FollowJudged&, const FollowJudged&) = default;
};

// Reason why received data does not continue the target's data; kNone: it does.
struct Gap {
  CutReason reason = CutReason::kNone;
  std::string note;
};

// Asks for the WAL bytes after a position.
struct FollowRequest {
  static constexpr char kName[] = "FollowRequest";

  std::string database;  // NAME of the served database
  FollowPosition position;
  // True if a compaction of a family with a compaction filter requires a new
  // cut.
  bool exact_filters = false;
  // Time in milliseconds that the source waits for new data before it sends an
  // empty answer.
  uint32_t wait_millis = 0;
  std::string target;  // as in an OpenRequest, for the source's operator
  friend bool operator==(const FollowRequest&, const FollowRequest&) = default;
};

// Bytes of a WAL, beginning at an offset. Before this offset, the target's WAL
// with the same number must have the same bytes. The bytes in one message may
// end inside a record.
struct WalBytes {
  static constexpr char kName[] = "WalBytes";

  uint64_t wal_number = 0;
  uint64_t offset_bytes = 0;
  std::string bytes;
  friend bool operator==(const WalBytes&, const WalBytes&) = default;
};

// Returns "unknown", "open" or "closed".
const char* SourceProcessName(SourceProcess process);

// Ends the answer to a FollowRequest. The target may now publish the state that
// it has reached.
struct FollowEnd {
  static constexpr char kName[] = "FollowEnd";

  // Reason why the target must take a cut; kNone: it need not. With a reason,
  // the answer has no WalBytes, and the source sends none until the target has
  // taken a cut.
  CutReason cut = CutReason::kNone;
  std::string note;            // reason for the cut, for people
  uint64_t last_sequence = 0;  // source's sequence number after these bytes
  // Time before the source read the WALs, in microseconds since 1970, by the
  // source's clock. If more_bytes is 0, the target has everything that was in
  // the WALs at this time.
  uint64_t read_micros = 0;
  uint64_t more_bytes = 0;  // WAL bytes that are still to be sent; 1: unknown
  // True if no process had the database open after the request arrived, and the
  // source has checked everything that it read after this moment. Then the
  // database cannot change until a process opens it.
  bool source_closed = false;
  // State of the source when it last read the database.
  SourceProcess source_process = SourceProcess::kUnknown;
  // The checked part of the MANIFEST, for the position after this answer. Set
  // only if more_bytes is 0. If `cut` is kNewLife, `judged` has another
  // meaning: when the source's MANIFEST had only these bytes, the source had
  // everything up to the request's position.
  FollowJudged judged;
  // XXH3-128 of the WAL in which this answer's bytes end, from the WAL's first
  // byte to this end, as read by the source. Zeros if the answer has no bytes.
  Digest128 wal{};
  friend bool operator==(const FollowEnd&, const FollowEnd&) = default;
};

// Maximum bytes of one WalBytes, and of all WalBytes in one answer. An answer
// ends with a complete record, so a record larger than an answer requires a
// cut.
inline constexpr uint32_t kMaxFollowBytes = kMaxPayloadBytes - 64;
inline constexpr uint64_t kMaxFollowAnswerBytes = 64ull << 20;
// Maximum wait of a FollowRequest, in milliseconds.
inline constexpr uint32_t kMaxFollowWaitMillis = 10'000;

}  // namespace sstferry
