// What a difference between two databases means: whether writes at one since
// the other was pulled from it can explain it, and what to type next.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/end_state.h"
#include "pipeline/base/last_transfer.h"
#include "sstferry/options.h"

namespace sstferry {

// A side as it was pinned.
struct JudgedSide {
  SourceAddress address;
  std::string database_id;
  uint64_t sequence = 0;
  std::optional<LastTransfer> record;  // of a directory that has one
  // Families that the other side does not have.
  std::vector<std::string> families_only_here;
};

struct Verdict {
  EndState state = EndState::kDifferent;  // or kChangedSince
  std::string reason;  // a sentence: which sequences were compared
  std::string next;    // a command; empty: none is known
};

// True when `copy` records that its data came from the database `origin` is,
// and at which sequence.
bool IsPulledFrom(const JudgedSide& copy, const JudgedSide& origin);

// Of two sides that were compared as `selection` says, and differ.
Verdict JudgeDifference(const JudgedSide& left, const JudgedSide& right,
                        const Selection& selection);

}  // namespace sstferry
