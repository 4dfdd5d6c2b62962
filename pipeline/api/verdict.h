// Explains a difference between two databases: if writes at the source since
// the pull can be the cause, and which command to run next.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/end_state.h"
#include "pipeline/base/last_transfer.h"
#include "sstferry/options.h"

namespace sstferry {

// One side's snapshot.
struct JudgedSide {
  SourceAddress address;
  std::string access;  // AccessWords() of the address
  std::string database_id;
  uint64_t sequence = 0;
  std::optional<LastTransfer> record;  // set if the directory has a record
  // Families that the other side does not have.
  std::vector<std::string> families_only_here;
};

struct Verdict {
  EndState state = EndState::kDifferent;  // or kChangedSince
  // The copy must be wrong: neither writes at the source, nor an older state of
  // it, nor data that was not pulled can be the cause.
  bool is_fault = false;
  std::string reason;  // a sentence with the compared sequences
  // The command that makes the copy equal, or that compares what can be
  // compared; empty: unknown.
  std::string next;
  // A sentence about families that a refresh would not remove; empty: none.
  std::string beyond_repair;
};

// Returns true if `copy` has a record of a pull from the database of `origin`,
// was not promoted since, and the record has the snapshot's sequence number. If
// `origin` is a copy with the id of its own source (--keep-identity), the
// record must also name its address: otherwise both may be copies of that
// source.
bool IsPulledFrom(const JudgedSide& copy, const JudgedSide& origin);

// Returns the verdict on two sides that differ, compared with `selection`.
Verdict JudgeDifference(const JudgedSide& left, const JudgedSide& right,
                        const Selection& selection);

}  // namespace sstferry
