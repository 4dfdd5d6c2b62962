// Messages of the control connection with which a target follows a live source.
// See format/messages.h.
#pragma once

#include <cstdint>
#include <string>

#include "format/digest.h"
#include "format/limits.h"
#include "format/types.h"

namespace sstferry {

// Position that a target has reached, and the history to which it belongs. A
// database that was recreated, or restored from an older copy, may have the
// same file numbers and the same MANIFEST, but not also the same bytes in its
// WALs. All zero: the target has nothing.
struct FollowPosition {
  // The source's id. Empty: not known, and equal to no id.
  std::string database_id;
  uint64_t manifest_number = 0;
  // Size of the MANIFEST's whole records at the cut with which the target
  // began.
  uint64_t cut_bytes = 0;
  // End of the MANIFEST bytes that a source has judged for the target, and
  // XXH3-128 over them. No record in them after cut_bytes requires a cut for a
  // target that has the WALs up to this position. Another reader of the source,
  // which has not seen the removed WALs, need not judge these records again.
  // Initially equal to cut_bytes.
  uint64_t manifest_bytes = 0;
  Digest128 manifest{};
  // The newest WAL of which the target has a record, the end of its whole
  // records, and XXH3-128 over its bytes up to there. If no WAL has a record:
  // the oldest WAL, and no bytes. An empty WAL may exist before the previous
  // one is complete (manual_wal_flush, async_wal_precreate).
  uint64_t wal_number = 0;
  uint64_t wal_bytes = 0;
  Digest128 wal{};
  friend bool operator==(const FollowPosition&,
                         const FollowPosition&) = default;
};

// The part of its MANIFEST that a source has judged, as in a FollowPosition.
// All zero: not known.
struct FollowJudged {
  uint64_t manifest_bytes = 0;
  Digest128 manifest{};  // XXH3-128 over these bytes
  friend bool operator==(const FollowJudged&, const FollowJudged&) = default;
};

// Reason why received data does not continue what a target has; kNone: it does.
struct Gap {
  CutReason reason = CutReason::kNone;
  std::string note;
};

// Asks for the WAL bytes after a position.
struct FollowRequest {
  static constexpr char kName[] = "FollowRequest";

  std::string database;  // NAME
  FollowPosition position;
  // A compaction of a family with a compaction filter requires a new cut.
  bool exact_filters = false;
  // Time that the source waits for new data before it sends an empty answer, in
  // milliseconds.
  uint32_t wait_millis = 0;
  std::string target;  // as in an OpenRequest, for the source's operator
  friend bool operator==(const FollowRequest&, const FollowRequest&) = default;
};

// Bytes of a WAL, starting where the previous bytes ended.
struct FollowBytes {
  static constexpr char kName[] = "FollowBytes";

  uint64_t wal_number = 0;
  uint64_t offset = 0;
  std::string bytes;
  friend bool operator==(const FollowBytes&, const FollowBytes&) = default;
};

// Ends the answer to a FollowRequest. The target may now show the state that it
// has reached.
struct FollowEnd {
  static constexpr char kName[] = "FollowEnd";

  // If not kNone, the answer has no FollowBytes, and the source sends none
  // until the target has taken a cut.
  CutReason cut = CutReason::kNone;
  std::string note;            // reason for the cut, for people
  uint64_t last_sequence = 0;  // the source's, after all these bytes
  // The source's clock, since 1970, before it read the WALs. The target has
  // everything that was in them then, unless more_bytes is not 0.
  uint64_t read_micros = 0;
  uint64_t more_bytes = 0;  // bytes after these; 1 if the number is not known
  // After the request arrived, no process had the database open, and everything
  // that was read then is judged: the database cannot change until a process
  // opens it.
  bool source_closed = false;
  // A process has the database open, or had when the source last read it.
  // False: no process has it open, or that is not known.
  bool source_open = false;
  // For the position after these bytes; set when more_bytes is 0.
  FollowJudged judged;
  // XXH3-128 over the WAL in which these bytes end, from its first byte to
  // there, as the source read it. Zeros if there are no bytes.
  Digest128 wal{};
  friend bool operator==(const FollowEnd&, const FollowEnd&) = default;
};

// Maximum bytes of one FollowBytes, and of all FollowBytes of one answer. An
// answer ends with a whole record, so a larger record requires a cut.
inline constexpr uint32_t kMaxFollowBytes = kMaxPayloadBytes - 64;
inline constexpr uint64_t kMaxFollowAnswerBytes = 64ull << 20;
// Maximum wait of a FollowRequest, in milliseconds.
inline constexpr uint32_t kMaxFollowWaitMillis = 10'000;

}  // namespace sstferry
