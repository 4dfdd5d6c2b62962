// Chooses the sets and segments of a log that are kept.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "pipeline/archive/log_index.h"

namespace sstferry {

// Returns the names of those `sets` from which all that the log holds since
// keep_from_micros can be restored: every segment of that time that one of the
// `sets` reaches is reached by a returned one. Before that time, the newest set
// suffices; after it, the oldest is taken first, and later sets only where a
// log begins, or where a segment is missing. So a damaged set that is not among
// `sets` makes a later one necessary.
std::set<SetName> ChooseLogSets(const ArchiveLog& log,
                                std::vector<LoggedSet> sets,
                                uint64_t keep_from_micros);

// Returns the keys of the segments to keep. `cuts` are the sets whose log is
// kept; the segments after them are kept, in the set's lineage and in all
// lineages that continue it. A lineage is kept completely if is_written()
// returns true for it (its cut is being pushed), or if it has a problem: a lost
// or damaged head may be repaired by hand.
std::set<std::string> ChooseSegments(
    const ArchiveLog& log, const std::vector<SetLog>& cuts,
    const std::function<bool(const SetId&)>& is_written);

}  // namespace sstferry
