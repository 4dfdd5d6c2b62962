// End states: how a transfer, a verify or a plan ended. Their names appear in
// the log and in JSON; each has an exit code. Both sides report the same state,
// which the End message carries as one byte.
//
// A rocksdb::Status carries an end state as the first part of its message
// ("NO_SPACE: staging: ..."), so all functions return a plain Status, and no
// second status type is needed. EndStateOf() reads the state; for a Status
// without this prefix, it maps the Status's code.
//
// A message is one sentence. If a command helps, MakeStatus() receives it
// separately from the sentence, and NextOf() returns it: JSON has both, and a
// terminal shows the command on its own line. All functions below preserve the
// command.
#pragma once

#include <cstdint>
#include <string>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Frames and journals contain these values: never renumber them.
enum class EndState : uint8_t {
  kOk = 0,
  kRefused = 1,        // cannot be moved exactly, or must not be changed
  kIncompatible = 2,   // protocol, format, comparator or options do not match
  kDenied = 3,         // the peer is not allowed to do this
  kNoSpace = 4,
  kCorrupt = 5,        // bytes are wrong, on disk or on the wire
  kSourceError = 6,    // the source could not read, open or pin
  kInternal = 7,       // everything else, including local I/O errors
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

// Returns a state's name, "OK", "REFUSED", ..., as in the table of
// docs/operations.md.
const char* EndStateName(EndState state);

// Returns the exit code as in docs/operations.md: 0 OK, 1 failed, 3 different,
// 4 temporary, 5 busy. (Code 2, wrong usage, has no state.)
int ExitCodeOf(EndState state);

// Returns a Status that carries `state`. REQUIRES: state != kOk.
// Line ends in `what` and `next` become '?'. `next`: the command to run next;
// may be empty.
[[nodiscard]] rocksdb::Status MakeStatus(EndState state,
                                         const rocksdb::Slice& what,
                                         const rocksdb::Slice& next = {});

// Like MakeStatus(), for data that a clone can hold but chunks cannot. Appends
// to the sentence that only a clone can hold it.
[[nodiscard]] rocksdb::Status OnlyAsFiles(EndState state,
                                          const rocksdb::Slice& sentence,
                                          const rocksdb::Slice& next = {});

// Prepends `state` (unless the status already carries a state) and "where: " to
// the message of a failed status; OK stays OK.
[[nodiscard]] rocksdb::Status WithContext(const rocksdb::Status& status,
                                          EndState state,
                                          const rocksdb::Slice& where);

// Returns the state that a Status carries, or else the state for its code:
// Corruption kCorrupt, NotSupported kRefused, InvalidArgument kIncompatible,
// IOError(NoSpace) kNoSpace, Busy kBusy, TimedOut kDeadPeer, Aborted and
// ShutdownInProgress kCancelled, Expired kSnapshotGone, any other code
// kInternal.
EndState EndStateOf(const rocksdb::Status& status);

// Returns true if a source retains a pull's snapshot after the target reported
// this end state, because the target may resume the pull. (After kSnapshotGone
// there is no snapshot to retain.)
bool MayGoOnAfter(EndState state);

// Returns the message in one line, without the state's prefix: the sentence,
// and "; next: COMMAND" if there is a command. For a status that RocksDB made,
// returns its full ToString().
std::string MessageOf(const rocksdb::Status& status);
// Returns the message without the command.
std::string SentenceOf(const rocksdb::Status& status);
// Returns the command to run next; empty: none.
std::string NextOf(const rocksdb::Status& status);

// Join a sentence and a command (may be empty) in one text, and split the text
// again. Used for texts that another process reads: that process must not show
// a peer's command as its own.
std::string JoinNext(const std::string& sentence, const std::string& next);
std::string SplitNext(const std::string& text, std::string* next);

// Returns the status of `expression` from the function, unless it is OK.
#define RETURN_IF_ERROR(expression)                 \
  do {                                              \
    const rocksdb::Status returned_ = (expression); \
    if (!returned_.ok()) {                          \
      return returned_;                             \
    }                                               \
  } while (false)

}  // namespace sstferry
