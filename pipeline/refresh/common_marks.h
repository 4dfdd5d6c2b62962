// Finds which entries two sides have in common by marks of three bytes
// (format/messages_delta.h).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace sstferry {

// Returns pairs of indexes of equal marks, ascending on both sides. A mark that
// occurs twice on a side is in none. Another entry may have the same mark: who
// believes a pair compares digests first.
std::vector<std::pair<uint32_t, uint32_t>> FindCommonMarks(
    const std::vector<uint32_t>& here, const std::vector<uint32_t>& there);

}  // namespace sstferry
