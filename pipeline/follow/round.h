// A round: the records that a source's WALs received since the last round. The
// source's half of following passes them to the standby's half.
//
// The source's half (followed_source.h) reads the WALs first and the MANIFEST
// second. So if an event is only in the MANIFEST (an ingestion, for example), a
// round contains no record that was written after it. The standby's half
// appends the bytes, and publishes its new end after it has synced them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/messages_follow.h"

namespace sstferry {

struct Round {
  // Complete records, one entry for each WAL, in the order of their numbers.
  std::vector<WalBytes> logs;
  // If end.cut is set, `logs` is empty, and the follower must take a cut next.
  FollowEnd end;
  // Time of the request and of the answer, in microseconds since 1970, by this
  // machine's clock.
  uint64_t asked_micros = 0;
  uint64_t heard_micros = 0;
  // Returns false if the answer has nothing, although the source may have more:
  // it does not prove that the source knows the position, and the source may
  // still require a cut.
  bool is_decided() const {
    return end.cut != CutReason::kNone || !logs.empty() || end.more_bytes == 0;
  }
};

}  // namespace sstferry
