// Formats sizes, counts and durations for people, in the same way everywhere.
#pragma once

#include <cstdint>
#include <string>

namespace sstferry {

// Returns for example "512.4 MB", in powers of 1000.
std::string FormatBytes(uint64_t bytes);
// Returns for example "6,950".
std::string FormatNumber(uint64_t number);
// Returns "1 chunk" or "6,950 chunks". `plural` is needed if it is not
// `singular` with an s.
std::string FormatCount(uint64_t count, const std::string& singular,
                        const std::string& plural = "");
// Returns "250 ms", "90 s", "10 min" or "1 h 30 min".
std::string FormatMillis(int64_t millis);

}  // namespace sstferry
