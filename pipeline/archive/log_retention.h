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

// Returns the keys of the segments to keep. `cuts` are the kept sets; the
// segments after them are kept, in the set's lineage and in all lineages that
// continue it. A lineage is kept completely if is_written() returns true for it
// (its cut is being pushed), or if one of its heads cannot be read. With
// `keep_from_micros`, only the newest cut before that time, and later cuts,
// keep segments: before that time, only the moments of sets can be restored.
std::set<std::string> ChooseSegments(
    const ArchiveLog& log, std::vector<SetLog> cuts,
    const std::function<bool(const SetId&)>& is_written,
    std::optional<uint64_t> keep_from_micros);

}  // namespace sstferry
