// Finds the entries that two sides have in common by marks of three bytes
// (format/messages_delta.h).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace sstferry {

// Returns pairs of indexes of equal marks, ascending on both sides. A mark that
// occurs twice on a side is in no pair. Different entries may have equal marks,
// so callers compare digests before they rely on a pair.
std::vector<std::pair<uint32_t, uint32_t>> FindCommonMarks(
    const std::vector<uint32_t>& here, const std::vector<uint32_t>& there);

}  // namespace sstferry
