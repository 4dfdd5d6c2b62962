// The key intervals that a repair asks for (PullOptions::ranges): checked, as
// the source is told of them.
#pragma once

#include <string>
#include <vector>

#include "pipeline/target/journal/journal_state.h"
#include "pipeline/target/memory/cover_record.h"
#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// Sorts them, by family and then in key order, and joins those that meet.
// A family that is not among `families` is taken whole.
//   kRefused  one of them is empty
[[nodiscard]] rocksdb::Status SortRanges(
    std::vector<FamilyRange> ranges, const std::vector<JudgedFamily>& families,
    std::vector<FamilyRange>* sorted);

// Puts them in the place of the interval records.
void TellRanges(const std::vector<FamilyRange>& sorted, TargetMemory* memory);

// True if an unfinished repair is one of these ranges. Families that the target
// did not have are whole.
bool IsPlanOf(const std::vector<FamilyRange>& sorted,
              const JournalState& journal);

}  // namespace sstferry
