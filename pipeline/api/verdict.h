// Explains a difference between two databases: whether writes at the source
// since the pull can be the cause, and which command to run next.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/end_state.h"
#include "pipeline/base/last_transfer.h"
#include "sstferry/options.h"

namespace sstferry {

// Facts about one side of a comparison.
struct JudgedSide {
  SourceAddress address;
  std::string access;  // AccessWords(address)
  std::string database_id;
  uint64_t sequence = 0;
  // Set if the directory has the record of a pull.
  std::optional<LastTransfer> record;
  // Column families that the other side does not have.
  std::vector<std::string> families_only_here;
};

struct Verdict {
  EndState state = EndState::kDifferent;  // or kChangedSince
  // True: the copy is wrong. Nothing else explains the difference: no writes at
  // the source, no older state of the source, and no data that was not pulled.
  bool is_fault = false;
  std::string reason;  // one sentence, with the sequence numbers of both sides
  // A command to run next. It makes the copy equal, or compares only the data
  // that was pulled. Empty: no command is known.
  std::string next;
  // A sentence about column families of the copy that a refresh keeps. Empty:
  // the copy has no such family.
  std::string beyond_repair;
};

// Returns true if `copy` has a record of a pull from the database of `origin`,
// and was not promoted after that pull. The record must contain the sequence
// number of the pulled snapshot. `origin` may itself be a copy that has the
// database id of its source (--keep-identity). Then the record must also
// contain the address of `origin`, because both sides could be copies of the
// same source.
bool IsPulledFrom(const JudgedSide& copy, const JudgedSide& origin);

// Returns true if the record names `other` as the source: by the same address
// or, for an archive, by any set of it. If it does not, a copy that is equal to
// `other` may still be wrong: `other` may be the copy itself, served at a URL,
// or an archive that was pushed from the copy.
bool NamesSource(const LastTransfer& record, const SourceAddress& other);

// Returns the verdict on two sides that differ. Only the data in `selection`
// was compared.
Verdict JudgeDifference(const JudgedSide& left, const JudgedSide& right,
                        const Selection& selection);

}  // namespace sstferry
