// Chooses the sets and segments of a log that are kept.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "pipeline/archive/log_index.h"

namespace sstferry {

// Returns the names of the `sets` that are needed to restore everything that
// the log has since keep_from_micros: each segment since then that can be
// restored from one of `sets` can be restored from a returned set. Returns the
// newest set before that time, and a later set only where a log begins or a
// segment is missing. So if a damaged set is not among `sets`, a later one may
// be needed instead.
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
