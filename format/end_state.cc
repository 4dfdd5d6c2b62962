#include "format/end_state.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

struct Row {
  EndState state;
  const char* name;
  int exit_code;
};

constexpr Row kRows[] = {
    {EndState::kOk, "OK", 0},
    {EndState::kRefused, "REFUSED", 1},
    {EndState::kIncompatible, "INCOMPATIBLE", 1},
    {EndState::kDenied, "DENIED", 1},
    {EndState::kNoSpace, "NO_SPACE", 4},
    {EndState::kCorrupt, "CORRUPT", 1},
    {EndState::kSourceError, "SOURCE_ERROR", 1},
    {EndState::kInternal, "INTERNAL", 1},
    {EndState::kDifferent, "DIFFERENT", 3},
    {EndState::kCancelled, "CANCELLED", 4},
    {EndState::kDeadline, "DEADLINE", 4},
    {EndState::kDeadPeer, "DEAD_PEER", 4},
    {EndState::kTooSlow, "TOO_SLOW", 4},
    {EndState::kSnapshotGone, "SNAPSHOT_GONE", 4},
    {EndState::kChangedSince, "CHANGED_SINCE", 3},
    {EndState::kBusy, "BUSY", 5},
};
static_assert(std::size(kRows) == kMaxEndState + 1);

const Row& RowOf(EndState state) {
  return kRows[static_cast<uint8_t>(state)];
}

// Separates a sentence from its command. Neither contains a line end
// (OneLine()).
constexpr char kNext[] = "\nnext: ";

std::string OneLine(const Slice& text) {
  std::string line = text.ToString();
  std::replace(line.begin(), line.end(), '\n', '?');
  return line;
}

// The prefix "NAME: " of a message.
struct Prefix {
  const Row* row = nullptr;  // null: the message has no prefix
  size_t length = 0;
};

bool Skip(const char* expected, const char** text) {
  const size_t length = strlen(expected);
  const bool found = strncmp(*text, expected, length) == 0;
  *text += found ? length : 0;
  return found;
}

Prefix PrefixOf(const Status& status) {
  const char* const text = status.getState();
  if (text == nullptr) {
    return {};
  }
  for (const Row& row : kRows) {
    const char* rest = text;
    if (!Skip(row.name, &rest)) {
      continue;
    }
    if (Skip(": ", &rest)) {
      return {&row, static_cast<size_t>(rest - text)};
    }
  }
  return {};
}

// Returns the sentence and the command that a status carries, without the
// prefix.
std::string TextOf(const Status& status) {
  const Prefix prefix = PrefixOf(status);
  return prefix.row != nullptr ? status.getState() + prefix.length
                               : OneLine(status.ToString());
}

}  // namespace

const char* EndStateName(EndState state) { return RowOf(state).name; }

int ExitCodeOf(EndState state) { return RowOf(state).exit_code; }

std::string JoinNext(const std::string& sentence, const std::string& next) {
  return OneLine(sentence) + (next.empty() ? "" : kNext + OneLine(next));
}

std::string SplitNext(const std::string& text, std::string* next) {
  const size_t at = text.find(kNext);
  *next = at == std::string::npos ? "" : text.substr(at + strlen(kNext));
  return text.substr(0, at);
}

Status MakeStatus(EndState state, const Slice& sentence, const Slice& next) {
  const Slice name(EndStateName(state));
  const std::string what = JoinNext(sentence.ToString(), next.ToString());
  switch (state) {
    case EndState::kRefused:
      return Status::NotSupported(name, what);
    case EndState::kIncompatible:
      return Status::InvalidArgument(name, what);
    case EndState::kNoSpace:
      return Status::NoSpace(name, what);
    case EndState::kCorrupt:
      return Status::Corruption(name, what);
    case EndState::kCancelled:
      return Status::Aborted(name, what);
    case EndState::kDeadline:
    case EndState::kDeadPeer:
    case EndState::kTooSlow:
      return Status::TimedOut(name, what);
    case EndState::kSnapshotGone:
      return Status::Expired(name, what);
    case EndState::kChangedSince:
      return Status::TryAgain(name, what);
    case EndState::kBusy:
      return Status::Busy(name, what);
    default:
      return Status::IOError(name, what);
  }
}

Status OnlyAsFiles(EndState state, const Slice& sentence, const Slice& next) {
  return MakeStatus(state,
                    sentence.ToString() + "; only a clone can hold this: pull "
                                          "or swap the whole database with "
                                          "--method clone",
                    next);
}

Status WithContext(const Status& status, EndState state, const Slice& where) {
  if (status.ok()) {
    return status;
  }
  const EndState kept =
      PrefixOf(status).row != nullptr ? EndStateOf(status) : state;
  return MakeStatus(kept, where.ToString() + ": " + SentenceOf(status),
                    NextOf(status));
}

EndState EndStateOf(const Status& status) {
  if (status.ok()) {
    return EndState::kOk;
  }
  if (const Row* row = PrefixOf(status).row) {
    return row->state;
  }
  if (status.IsCorruption()) return EndState::kCorrupt;
  if (status.IsNotSupported()) return EndState::kRefused;
  if (status.IsInvalidArgument()) return EndState::kIncompatible;
  if (status.IsNoSpace()) return EndState::kNoSpace;
  if (status.IsBusy()) return EndState::kBusy;
  if (status.IsTimedOut()) return EndState::kDeadPeer;
  if (status.IsAborted() || status.IsShutdownInProgress()) {
    return EndState::kCancelled;
  }
  if (status.IsExpired()) return EndState::kSnapshotGone;
  return EndState::kInternal;
}

bool MayGoOnAfter(EndState state) {
  switch (state) {
    case EndState::kCancelled:
    case EndState::kDeadline:
    case EndState::kDeadPeer:
    case EndState::kNoSpace:
    case EndState::kTooSlow:
      return true;
    default:
      return false;
  }
}

std::string MessageOf(const Status& status) {
  const std::string next = NextOf(status);
  return SentenceOf(status) + (next.empty() ? "" : "; next: " + next);
}

std::string SentenceOf(const Status& status) {
  std::string next;
  return SplitNext(TextOf(status), &next);
}

std::string NextOf(const Status& status) {
  std::string next;
  SplitNext(TextOf(status), &next).clear();
  return next;
}

}  // namespace sstferry
