#include "format/quantity.h"

#include <array>
#include <cstdio>
#include <iterator>

namespace sstferry {

std::string FormatBytes(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  size_t unit = 0;
  auto value = static_cast<double>(bytes);
  while (value >= 999.95 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s",
                value, kUnits[unit]);
  return text.data();
}

std::string FormatNumber(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3;) {
    at -= 3;
    text.insert(at, ",");
  }
  return text;
}

std::string FormatCount(uint64_t count, const std::string& singular,
                        const std::string& plural) {
  return FormatNumber(count) + " " +
         (count == 1       ? singular
          : plural.empty() ? singular + "s"
                           : plural);
}

std::string FormatMillis(int64_t millis) {
  if (millis < 1000 || (millis < 10'000 && millis % 1000 != 0)) {
    return std::to_string(millis) + " ms";
  }
  const int64_t seconds = millis / 1000;
  // Shows up to 119 s in seconds, because operators configure times like 90 s.
  // Longer times, like 600 s, are easier to read in minutes.
  if (seconds < 120) {
    return std::to_string(seconds) + " s";
  }
  const int64_t minutes = seconds / 60;
  if (minutes < 120 && minutes % 60 != 0) {
    return std::to_string(minutes) + " min";
  }
  const std::string hours = std::to_string(minutes / 60) + " h";
  return minutes % 60 == 0 ? hours
                           : hours + " " + std::to_string(minutes % 60) +
                                 " min";
}

}  // namespace sstferry
