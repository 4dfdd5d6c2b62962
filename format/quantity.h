// Formats sizes, counts and durations for people.
#pragma once

#include <cstdint>
#include <string>

namespace sstferry {

// Returns a text like "512.4 MB", in powers of 1000.
std::string FormatBytes(uint64_t bytes);
// Returns a text like "6,950".
std::string FormatNumber(uint64_t number);
// Returns "1 chunk" or "6,950 chunks". `plural` may be empty if it is
// `singular` with an s.
std::string FormatCount(uint64_t count, const std::string& singular,
                        const std::string& plural = "");
// Returns "250 ms", "90 s", "10 min" or "1 h 30 min".
std::string FormatMillis(int64_t millis);

}  // namespace sstferry
