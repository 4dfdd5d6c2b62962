// A round: the records that the source's WALs received since the last round.
// The source's half of following makes rounds, and the standby's half receives
// them.
//
// The source's half (followed_source.h) first reads the WALs and then the
// MANIFEST. Some events, for example an ingestion, are only in the MANIFEST.
// Because of this order, a round contains no record that was written after such
// an event. The standby's half appends the records, syncs them, and then
// publishes its new end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/messages_follow.h"

namespace sstferry {

struct Round {
  // Complete records. Has one element per WAL, in the order of the WALs'
  // numbers.
  std::vector<WalBytes> logs;
  // If end.cut is set, `logs` is empty, and the follower must take a cut next.
  FollowEnd end;
  // When this machine sent the request and received the answer: microseconds
  // since 1970, by its clock.
  uint64_t asked_micros = 0;
  uint64_t heard_micros = 0;
  // Returns false if the answer has no records although the source may have
  // more. Such an answer proves nothing: the source may not know the position,
  // and may require a cut in the next answer.
  bool is_decided() const {
    return end.cut != CutReason::kNone || !logs.empty() || end.more_bytes == 0;
  }
};

}  // namespace sstferry
