// How a transfer, a verify or a plan ended: the names an operator reads in the
// log, in JSON and behind the exit code, the same on both ends (they travel in
// the End message as one byte).
//
// A rocksdb::Status carries an end state as the first part of its message
// ("NO_SPACE: staging: ..."), so functions everywhere return plain Status and
// no second status type exists. EndStateOf() reads it back; a Status without
// such a prefix maps from its code.
#pragma once

#include <cstdint>
#include <string>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Values are written to the wire and to journals: never renumber.
enum class EndState : uint8_t {
  kOk = 0,
  kRefused = 1,        // cannot be moved faithfully, or must not be touched
  kIncompatible = 2,   // protocol, format, comparator, options do not fit
  kDenied = 3,         // this peer may not have that
  kNoSpace = 4,
  kCorrupt = 5,        // bytes are wrong, at rest or on the way
  kSourceError = 6,    // the source could not read, open or pin
  kInternal = 7,       // everything else, local I/O errors included
  kDifferent = 8,      // verify found a difference
  kCancelled = 9,
  kDeadline = 10,
  kDeadPeer = 11,
  kTooSlow = 12,
  kSnapshotGone = 13,
  kChangedSince = 14,
  kBusy = 15,
};
inline constexpr uint8_t kMaxEndState = 15;

// "OK", "REFUSED", ... as README's table spells them.
const char* EndStateName(EndState state);

// The exit code of the table in README: 0 OK, 1 failed, 3 different, 4 may
// pass, 5 busy. (2, wrong usage, never comes from a state.)
int ExitCodeOf(EndState state);

// A Status that carries `state`. REQUIRES: state != kOk.
[[nodiscard]] rocksdb::Status MakeStatus(EndState state,
                                         const rocksdb::Slice& what);

// Puts `state` (unless the status already carries one) and "where: " in front
// of the message of a failed status; OK stays OK.
[[nodiscard]] rocksdb::Status WithContext(const rocksdb::Status& status,
                                          EndState state,
                                          const rocksdb::Slice& where);

// The state a Status carries, else by its code: Corruption kCorrupt,
// NotSupported kRefused, InvalidArgument kIncompatible, IOError(NoSpace)
// kNoSpace, Busy kBusy, TimedOut kDeadPeer, Aborted and ShutdownInProgress
// kCancelled, Expired kSnapshotGone, anything else kInternal.
EndState EndStateOf(const rocksdb::Status& status);

// Whether a source keeps its snapshot for a pull that says it ended so: it may
// come back and go on. (After kSnapshotGone there is nothing to keep.)
bool MayGoOnAfter(EndState state);

// The message for a person: without the state's prefix. For a status made by
// RocksDB, its full ToString().
std::string MessageOf(const rocksdb::Status& status);

}  // namespace sstferry
