// Parses hex digits.
#pragma once

#include <cstdint>
#include <optional>

namespace sstferry {

// Returns the value of a digit in either case; nullopt if `c` is not a hex
// digit.
inline std::optional<uint8_t> HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

// Returns the byte that two hex digits represent; nullopt if a character is not
// a hex digit.
inline std::optional<uint8_t> HexByte(char high, char low) {
  const auto upper = HexDigit(high);
  const auto lower = HexDigit(low);
  if (!upper.has_value() || !lower.has_value()) {
    return std::nullopt;
  }
  return static_cast<uint8_t>(*upper << 4 | *lower);
}

}  // namespace sstferry
