// The records that a source's WALs got since the last round: the two halves of
// following hand them to each other.
//
// The source's half (followed_source.h) reads the WALs first and the MANIFEST
// second, so that a round holds no record that was written behind an event
// which only the MANIFEST tells. The standby's half appends the bytes and shows
// what it holds once it is durable.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/messages_follow.h"

namespace sstferry {

// Whole records of one WAL. The standby's file of that number is the same from
// byte 0 to offset_bytes, and these follow there.
struct LogBytes {
  uint64_t wal_number = 0;
  uint64_t offset_bytes = 0;
  std::string bytes;
};

struct Round {
  std::vector<LogBytes> logs;  // in the order of numbers and offsets
  // With a `cut`, logs are empty, and the next thing must be a cut.
  FollowEnd end;
  // When it was asked for, and when the answer came, since 1970, by this
  // machine's clock.
  uint64_t asked_micros = 0;
  uint64_t heard_micros = 0;
};

}  // namespace sstferry
