// Chooses the sets and the segments that a prune must keep for a log.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "pipeline/archive/log_index.h"

namespace sstferry {

// Returns the names of the sets that are needed to restore the log since
// keep_from_micros. If a segment since that time can be restored from any of
// `sets`, it can be restored from a returned set, too. Returns the newest set
// before that time. Returns a later set only if a log begins there, or a
// segment is missing. If a damaged set is left out of `sets`, a later set may
// be needed instead.
std::set<SetName> ChooseLogSets(const ArchiveLog& log,
                                std::vector<LoggedSet> sets,
                                uint64_t keep_from_micros);

// Returns the keys of the segments to keep. `cuts` are the positions in the log
// at which sets end. Keeps the segments that follow them in the same lineage,
// and in all lineages that continue it. Keeps a whole lineage for which
// is_written() returns true, for example because a push of its first set is
// running. Also keeps a whole lineage with a problem, because an operator may
// repair a damaged head by hand.
std::set<std::string> ChooseSegments(
    const ArchiveLog& log, const std::vector<SetLog>& cuts,
    const std::function<bool(const SetId&)>& is_written);

}  // namespace sstferry
