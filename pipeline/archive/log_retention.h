// Chooses the segments of a log that are kept.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "pipeline/archive/log_index.h"

namespace sstferry {

// Returns the keys of the segments to keep. `cuts` are the kept sets: the
// segments after them are needed, in the lineage of the set and in all that
// continue it. All segments are needed of a lineage for which is_written()
// returns true (its cut is being pushed), or of which a head cannot be read.
// With `keep_from_micros`, times before it can be restored only at sets, so
// only the newest cut before it and later ones count.
std::set<std::string> ChooseSegments(
    const ArchiveLog& log, std::vector<SetLog> cuts,
    const std::function<bool(const SetId&)>& is_written,
    std::optional<uint64_t> keep_from_micros);

}  // namespace sstferry
