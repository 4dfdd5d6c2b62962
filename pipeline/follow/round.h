// Passes the records that a source's WALs received since the last round from
// the source's half of following to the standby's half.
//
// The source's half (followed_source.h) reads the WALs first and the MANIFEST
// second, so that a round contains no record that was written after an event
// which only the MANIFEST records. The standby's half appends the bytes, and
// publishes what it holds after syncing it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/messages_follow.h"

namespace sstferry {

// Complete records of one WAL, from offset_bytes on. The standby's WAL of that
// number must be equal up to there.
struct LogBytes {
  uint64_t wal_number = 0;
  uint64_t offset_bytes = 0;
  std::string bytes;
};

struct Round {
  std::vector<LogBytes> logs;  // in the order of numbers and offsets
  // With a `cut`, logs are empty, and the follower must take a cut next.
  FollowEnd end;
  // Time of the request and of the answer, in microseconds since 1970, by this
  // machine's clock.
  uint64_t asked_micros = 0;
  uint64_t heard_micros = 0;
};

}  // namespace sstferry
