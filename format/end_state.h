// End states: how a transfer, a verify or a plan ended. The names of the states
// appear in the log and in JSON, and each state has an exit code. The End
// message contains the state, so the source and the target report the same one.
//
// A rocksdb::Status carries an end state as the first part of its message
// ("NO_SPACE: staging: ..."). So functions return a plain Status and need no
// other status type. EndStateOf() reads the state. If the message has no such
// prefix, EndStateOf() derives the state from the Status's code.
//
// A message is one sentence. A command that the operator should run next is
// kept apart from the sentence: MakeStatus() takes the command, and NextOf()
// returns it. JSON has the sentence and the command, and a terminal shows the
// command on its own line. All functions below preserve the command.
#pragma once

#include <cstdint>
#include <string>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Frames and journals contain these values, so they must never change.
enum class EndState : uint8_t {
  kOk = 0,
  kRefused = 1,        // data cannot be moved exactly, or must not be changed
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

// Returns the exit code of a state, as in docs/operations.md: 0 OK, 1 failed, 3
// different, 4 temporary, 5 busy. (Code 2, wrong usage, belongs to no state.)
int ExitCodeOf(EndState state);

// Returns a Status that carries `state`, the sentence `what` and the command
// `next`, which the operator can run next (may be empty). Replaces each line
// end in the two texts by '?'. REQUIRES: state != kOk.
[[nodiscard]] rocksdb::Status MakeStatus(EndState state,
                                         const rocksdb::Slice& what,
                                         const rocksdb::Slice& next = {});

// Returns a Status like MakeStatus(), for data that a clone can contain but
// chunks cannot. Adds this fact to the sentence.
[[nodiscard]] rocksdb::Status OnlyAsFiles(EndState state,
                                          const rocksdb::Slice& sentence,
                                          const rocksdb::Slice& next = {});

// Prepends `state` and "where: " to the message of a failed status. If the
// status already carries a state, keeps that state. Returns an OK status
// unchanged.
[[nodiscard]] rocksdb::Status WithContext(const rocksdb::Status& status,
                                          EndState state,
                                          const rocksdb::Slice& where);

// Returns the state that a Status carries. If it carries none, returns the
// state for the Status's code: Corruption kCorrupt, NotSupported kRefused,
// InvalidArgument kIncompatible, IOError(NoSpace) kNoSpace, Busy kBusy,
// TimedOut kDeadPeer, Aborted and ShutdownInProgress kCancelled, Expired
// kSnapshotGone, any other code kInternal.
EndState EndStateOf(const rocksdb::Status& status);

// Returns true if the target may resume a pull that it ended with this state.
// Then the source retains the pull's snapshot. (After kSnapshotGone, the source
// has no snapshot to retain.)
bool MayGoOnAfter(EndState state);

// Returns the message in one line, without the state's prefix: the sentence,
// and "; next: COMMAND" if there is a command. For a status that RocksDB made,
// returns its full ToString().
std::string MessageOf(const rocksdb::Status& status);
// Returns the message without the command.
std::string SentenceOf(const rocksdb::Status& status);
// Returns the command to run next; empty: no command.
std::string NextOf(const rocksdb::Status& status);

// JoinNext() joins a sentence and a command (may be empty) in one text, and
// SplitNext() splits the text again. Used for texts that another process reads.
// That process must not show a peer's command as its own.
std::string JoinNext(const std::string& sentence, const std::string& next);
std::string SplitNext(const std::string& text, std::string* next);

// Evaluates `expression`, a Status. If it is not OK, returns it from the
// calling function.
#define RETURN_IF_ERROR(expression)                 \
  do {                                              \
    const rocksdb::Status returned_ = (expression); \
    if (!returned_.ok()) {                          \
      return returned_;                             \
    }                                               \
  } while (false)

}  // namespace sstferry
