// Messages of the control connection by which a target follows a live source.
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
// same file numbers and the same MANIFEST, but then the bytes in its WALs
// differ. All zero: the target has nothing.
struct FollowPosition {
  // The source's id. Empty: unknown, and equal to no id.
  std::string database_id;
  uint64_t manifest_number = 0;
  // Size of the MANIFEST's complete records at the cut with which the target
  // began.
  uint64_t cut_bytes = 0;
  // Size of the start of the MANIFEST that a source has already checked for
  // this target, and XXH3-128 over it. No record in it after cut_bytes requires
  // a cut if the target has the WALs up to this position. So another process
  // that reads the source, and never saw the WALs that were removed, need not
  // check these records again. Initially equal to cut_bytes.
  uint64_t manifest_bytes = 0;
  Digest128 manifest{};
  // The newest WAL of which the target has a record, the end of its complete
  // records, and XXH3-128 over its bytes up to this end. If no WAL has a
  // record: the oldest WAL, and 0 bytes. An empty WAL may exist before the
  // previous WAL is complete (manual_wal_flush, async_wal_precreate).
  uint64_t wal_number = 0;
  uint64_t wal_bytes = 0;
  Digest128 wal{};
  friend bool operator==(const FollowPosition&,
                         const FollowPosition&) = default;
};

// The part of its MANIFEST that a source has checked, as in a FollowPosition.
// All zero: unknown.
struct FollowJudged {
  uint64_t manifest_bytes = 0;
  Digest128 manifest{};  // XXH3-128 over these bytes
  friend bool operator==(const FollowJudged&, const FollowJudged&) = default;
};

// Why received data does not continue the target's data; kNone: it does.
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
  // How long the source waits for new data before it sends an empty answer, in
  // milliseconds.
  uint32_t wait_millis = 0;
  std::string target;  // as in an OpenRequest, for the source's operator
  friend bool operator==(const FollowRequest&, const FollowRequest&) = default;
};

// Bytes of a WAL from an offset on. The target's WAL with this number must have
// the same bytes before it. In a message, the bytes may end inside a record.
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

  // If not kNone, the answer has no WalBytes, and the source sends no bytes
  // until the target has taken a cut.
  CutReason cut = CutReason::kNone;
  std::string note;            // reason for the cut, for people
  uint64_t last_sequence = 0;  // the source's, after all these bytes
  // The source's clock, since 1970, before it read the WALs. The target has
  // everything that was in the WALs at this time, unless more_bytes is not 0.
  uint64_t read_micros = 0;
  uint64_t more_bytes = 0;  // bytes after these; 1 if their number is unknown
  // True if no process had the database open after the request arrived, and the
  // source has checked everything that it read then. So the database cannot
  // change until a process opens it.
  bool source_closed = false;
  // As of the moment when the source last read the database.
  SourceProcess source_process = SourceProcess::kUnknown;
  // The checked part of the MANIFEST, for the position after these bytes; set
  // when more_bytes is 0. If `cut` is kNewLife: when the source's MANIFEST had
  // only these bytes, the source had everything up to the request's position.
  FollowJudged judged;
  // XXH3-128 over the WAL in which these bytes end, from its first byte to this
  // end, as read by the source. Zeros if there are no bytes.
  Digest128 wal{};
  friend bool operator==(const FollowEnd&, const FollowEnd&) = default;
};

// Maximum bytes of one WalBytes, and of all WalBytes in one answer. An
// answer ends with a complete record, so a larger record requires a cut.
inline constexpr uint32_t kMaxFollowBytes = kMaxPayloadBytes - 64;
inline constexpr uint64_t kMaxFollowAnswerBytes = 64ull << 20;
// Maximum wait of a FollowRequest, in milliseconds.
inline constexpr uint32_t kMaxFollowWaitMillis = 10'000;

}  // namespace sstferry
