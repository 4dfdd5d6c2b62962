// Finds entries that the source and the target probably have in common.
// Compares marks: the first three bytes of the entries' digests
// (format/messages_delta.h).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace sstferry {

// Returns pairs of indexes of equal marks: an index in `here`, and an index in
// `there`. Both indexes ascend from pair to pair. Ignores a mark that occurs
// twice on one side. Different entries may have equal marks, so the caller must
// compare digests of the entries before it uses a pair.
std::vector<std::pair<uint32_t, uint32_t>> FindCommonMarks(
    const std::vector<uint32_t>& here, const std::vector<uint32_t>& there);

}  // namespace sstferry
