// Messages of the control connection by which a target follows a live source.
// See format/messages.h.
#pragma once

#include <cstdint>
#include <string>

#include "format/digest.h"
#include "format/limits.h"
#include "format/types.h"

namespace sstferry {

// How far a target has followed, and of which history: a database that was made
// anew, or restored from an older copy, may have the same file numbers and the
// same MANIFEST, but not the same bytes in its WALs as well. All zero: it has
// nothing.
struct FollowPosition {
  // The source's id. Empty: not known, which equals nothing.
  std::string database_id;
  uint64_t manifest_number = 0;
  // The MANIFEST's whole records as of the cut that the target began with.
  uint64_t cut_bytes = 0;
  // Up to where a source has judged it for the target, and XXH3-128 over these
  // bytes: nothing in them, behind cut_bytes, asks for a cut of whoever has the
  // WALs as far as the target has them. Another reader of the source, which has
  // not seen the WALs that are gone, need not judge it again. At first cut_bytes.
  uint64_t manifest_bytes = 0;
  Digest128 manifest{};
  // The newest WAL with a record that the target has, where its whole records
  // end, and XXH3-128 over the bytes from its begin to there. If none has a
  // record: the oldest WAL, and no bytes. An empty WAL may be there before the
  // one before it is whole (manual_wal_flush, async_wal_precreate).
  uint64_t wal_number = 0;
  uint64_t wal_bytes = 0;
  Digest128 wal{};
  friend bool operator==(const FollowPosition&,
                         const FollowPosition&) = default;
};

// The part of its MANIFEST that a source has judged, as in a FollowPosition. All
// zero: not known.
struct FollowJudged {
  uint64_t manifest_bytes = 0;
  Digest128 manifest{};  // XXH3-128 over these bytes
  friend bool operator==(const FollowJudged&, const FollowJudged&) = default;
};

// Why what came does not continue what a target has; kNone: it does.
struct Gap {
  CutReason reason = CutReason::kNone;
  std::string note;
};

// Asks for what is behind a position.
struct FollowRequest {
  static constexpr char kName[] = "FollowRequest";

  std::string database;  // NAME
  FollowPosition position;
  // A compaction of a family with a compaction filter ends what can be followed.
  bool exact_filters = false;
  // The source waits so long for anything new before it answers with nothing.
  uint32_t wait_millis = 0;
  std::string target;  // as in an OpenRequest: for the source's operator
  friend bool operator==(const FollowRequest&, const FollowRequest&) = default;
};

// Bytes of a WAL, where those before end.
struct FollowBytes {
  static constexpr char kName[] = "FollowBytes";

  uint64_t wal_number = 0;
  uint64_t offset = 0;
  std::string bytes;
  friend bool operator==(const FollowBytes&, const FollowBytes&) = default;
};

// Ends the answer to a FollowRequest: the target may show what it holds now.
struct FollowEnd {
  static constexpr char kName[] = "FollowEnd";

  // Not kNone: no FollowBytes came, and none will until the target has taken a
  // cut.
  CutReason cut = CutReason::kNone;
  std::string note;            // what asks for the cut
  uint64_t last_sequence = 0;  // of the source, after all these bytes
  // The source's clock, since 1970, before it read the WALs: the target holds
  // everything that was in them then, unless more_bytes are left.
  uint64_t read_micros = 0;
  uint64_t more_bytes = 0;  // after these; 1 also where it is unknown
  // After the request arrived, no process had the database open, and everything
  // that was read then is judged: nothing follows these bytes until a process
  // opens it.
  bool source_closed = false;
  // A process has the database open, or had when the source read last. False:
  // none has, or that is not known.
  bool source_open = false;
  // For the position behind these bytes, once more_bytes is 0.
  FollowJudged judged;
  // XXH3-128 over the WAL in which these bytes end, from its begin to there, as
  // the source read it. Zeros if there are none.
  Digest128 wal{};
  friend bool operator==(const FollowEnd&, const FollowEnd&) = default;
};

// Bytes of one FollowBytes, and of all those of one answer, which ends with a
// whole record: a larger record is not followed.
inline constexpr uint32_t kMaxFollowBytes = kMaxPayloadBytes - 64;
inline constexpr uint64_t kMaxFollowAnswerBytes = 64ull << 20;
// Longest wait of a FollowRequest.
inline constexpr uint32_t kMaxFollowWaitMillis = 10'000;

}  // namespace sstferry
