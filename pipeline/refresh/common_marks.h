// Finds the entries that both sides have, by marks of three bytes
// (format/messages_delta.h).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace sstferry {

// Returns index pairs of equal marks, ascending on both sides. Skips a mark
// that occurs more than once on one side. Different entries may have equal
// marks, so callers compare digests before they rely on a pair.
std::vector<std::pair<uint32_t, uint32_t>> FindCommonMarks(
    const std::vector<uint32_t>& here, const std::vector<uint32_t>& there);

}  // namespace sstferry
