// Chooses the segments of a log that stay.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "pipeline/archive/log_index.h"

namespace sstferry {

// Returns the keys of the segments that are needed: those behind one of `cuts`,
// which are the sets that stay, in its lineage and in all that continue it; and
// all of a lineage for which is_written() is true, whose cut is being pushed, or
// of which a head cannot be read. `keep_from_micros`: no time before it is
// restored but those of sets, so only the newest cut before it and later ones
// count.
std::set<std::string> ChooseSegments(
    const ArchiveLog& log, std::vector<SetLog> cuts,
    const std::function<bool(const SetId&)>& is_written,
    std::optional<uint64_t> keep_from_micros);

}  // namespace sstferry
