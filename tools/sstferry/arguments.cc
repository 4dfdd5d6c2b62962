#include "tools/sstferry/arguments.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>

#include "format/hex.h"
#include "format/limits.h"
#include "sstferry/options.h"

namespace sstferry {
namespace {

using rocksdb::Status;

constexpr uint64_t kMaxMillis = 365ull * 24 * 3600 * 1000;
constexpr size_t kMaxFractionDigits = 9;

struct Unit {
  const char* suffix;
  uint64_t factor;
};

// The units of bytes in lower case. A "b" may follow each of them.
constexpr Unit kByteUnits[] = {
    {"", 1},
    {"k", 1000},
    {"m", 1000'000},
    {"g", 1000'000'000},
    {"t", 1000'000'000'000},
    {"ki", 1ull << 10},
    {"mi", 1ull << 20},
    {"gi", 1ull << 30},
    {"ti", 1ull << 40},
};
// The units of time, from the longest to the shortest. The units of a duration
// must have this order.
constexpr Unit kTimeUnits[] = {
    {"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1000},
    {"ms", 1}};

bool ReadDigits(const std::string& digits, uint64_t* number) {
  if (digits.empty()) {
    return false;
  }
  *number = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9' ||
        __builtin_mul_overflow(*number, uint64_t{10}, number) ||
        __builtin_add_overflow(*number, static_cast<uint64_t>(c - '0'),
                               number)) {
      return false;
    }
  }
  return true;
}

// Returns the number of bytes in a unit such as "KiB". Ignores upper and lower
// case. Returns 0 for an unknown unit.
uint64_t ByteFactor(std::string unit) {
  std::transform(unit.begin(), unit.end(), unit.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  if (!unit.empty() && unit.back() == 'b') {
    unit.pop_back();
  }
  for (const Unit& known : kByteUnits) {
    if (unit == known.suffix) {
      return known.factor;
    }
  }
  return 0;
}

// Parses a number of bytes such as "64M" or "1.5G". Rounds down to a whole
// byte. Returns false if the text is malformed, or if the result is 0 or more
// than 2^64 - 1.
bool ReadByteCount(const std::string& text, uint64_t* bytes) {
  const size_t end = std::min(text.find_first_not_of("0123456789."),
                              text.size());
  const size_t point = std::min(text.find('.'), end);
  const std::string fraction =
      point < end ? text.substr(point + 1, end - point - 1) : "";
  const uint64_t factor = ByteFactor(text.substr(end));
  uint64_t whole = 0;
  if (factor == 0 || !ReadDigits(text.substr(0, point), &whole) ||
      __builtin_mul_overflow(whole, factor, bytes)) {
    return false;
  }
  if (point < end) {
    uint64_t part = 0;
    if (factor == 1 || fraction.size() > kMaxFractionDigits ||
        !ReadDigits(fraction, &part)) {
      return false;
    }
    uint64_t scale = 1;
    for (size_t i = 0; i < fraction.size(); ++i) {
      scale *= 10;
    }
    const auto exact = static_cast<unsigned __int128>(part) * factor / scale;
    if (__builtin_add_overflow(*bytes, static_cast<uint64_t>(exact), bytes)) {
      return false;
    }
  }
  return *bytes > 0;
}

// Parses a duration such as "90s" or "1h30m". Returns false if the text is
// malformed, for example if a unit follows a shorter unit, or if the result is
// 0.
bool ReadMillis(const std::string& text, uint64_t* millis) {
  *millis = 0;
  size_t at = 0;
  for (const Unit& unit : kTimeUnits) {
    const size_t digits_end =
        std::min(text.find_first_not_of("0123456789", at), text.size());
    const size_t unit_end =
        std::min(text.find_first_of("0123456789", digits_end), text.size());
    if (text.substr(digits_end, unit_end - digits_end) != unit.suffix) {
      continue;
    }
    uint64_t number = 0;
    if (!ReadDigits(text.substr(at, digits_end - at), &number) ||
        __builtin_mul_overflow(number, unit.factor, &number) ||
        __builtin_add_overflow(*millis, number, millis)) {
      return false;
    }
    at = unit_end;
  }
  return at == text.size() && *millis > 0;
}

}  // namespace

std::string HelpText(const OptionSpec& spec) {
  std::string text = spec.help;
  if (!spec.bounds.empty()) {
    text += " " + spec.bounds + ".";
  }
  if (!spec.initial.empty()) {
    text += " Default: " + spec.initial + ".";
  }
  return text;
}

Status Wrong(const std::string& what, const std::string& expected,
             const std::string& found) {
  return Status::InvalidArgument(what + ": expected " + expected +
                                 ", found \"" + found + "\"");
}

Status OnlyWith(const std::string& option, const std::string& needed,
                const std::string& found) {
  return Status::InvalidArgument(option + ": needs " + needed +
                                 (found.empty() ? "" : ", found " + found));
}

Status ParseByteCount(const std::string& what, const std::string& text,
                      uint64_t* bytes) {
  if (!ReadByteCount(text, bytes)) {
    return Wrong(what,
                 "bytes such as 64M, 1.5G or 64MiB, from 1 and below 2^64 (K M "
                 "G T are powers of 1000, Ki Mi Gi Ti of 1024)",
                 text);
  }
  return Status::OK();
}

Status ParseDuration(const std::string& what, const std::string& text,
                     std::chrono::milliseconds* out) {
  uint64_t millis = 0;
  if (!ReadMillis(text, &millis) || millis > kMaxMillis) {
    return Wrong(what,
                 "a duration such as 90s, 1h30m or 1d, from 1ms to 365d (d h m "
                 "s ms)",
                 text);
  }
  *out = std::chrono::milliseconds(millis);
  return Status::OK();
}

Status ParseKey(const std::string& what, const std::string& text,
                std::string* key) {
  if (text.compare(0, 2, "0x") != 0) {
    *key = text;
  } else {
    if (text.size() % 2 != 0) {
      return Wrong(what, "an even number of hex digits after 0x", text);
    }
    key->clear();
    for (size_t i = 2; i < text.size(); i += 2) {
      const auto byte = HexByte(text[i], text[i + 1]);
      if (!byte.has_value()) {
        return Wrong(what, "only hex digits after 0x", text);
      }
      key->push_back(static_cast<char>(*byte));
    }
  }
  if (key->size() > kMaxKeyBytes) {
    return Status::InvalidArgument(
        what + ": expected a key of at most " + std::to_string(kMaxKeyBytes) +
        " bytes, found " + std::to_string(key->size()));
  }
  return Status::OK();
}

Status ParseNumber(const std::string& what, const std::string& text,
                   uint64_t least, uint64_t most, uint64_t* number) {
  if (!ReadDigits(text, number) || *number < least || *number > most) {
    return Wrong(what,
                 "a whole number from " + std::to_string(least) + " to " +
                     std::to_string(most),
                 text);
  }
  return Status::OK();
}

Status ParsePercent(const std::string& what, const std::string& text,
                    uint64_t most, double* percent) {
  uint64_t number = 0;
  if (text.empty() || text.back() != '%' ||
      !ParseNumber(what, text.substr(0, text.size() - 1), 0, most, &number)
           .ok()) {
    return Wrong(what, "0% to " + std::to_string(most) + "%", text);
  }
  *percent = static_cast<double>(number);
  return Status::OK();
}

Status ParseNamedDirectory(const std::string& what, const std::string& text,
                           NamedDirectory* out) {
  const size_t equals = text.find('=');
  const bool named =
      equals != std::string::npos && text.find('/') >= equals;
  out->directory = named ? text.substr(equals + 1) : text;
  if (out->directory.empty()) {
    return Wrong(what, "[NAME=]DIR with a DIR that is not empty", text);
  }
  if (named) {
    out->name = text.substr(0, equals);
  } else {
    std::error_code error;
    std::filesystem::path path =
        std::filesystem::absolute(out->directory, error).lexically_normal();
    if (!path.has_filename()) {
      path = path.parent_path();  // the text ended with '/'
    }
    out->name = path.filename().string();
  }
  if (!IsValidDatabaseName(out->name)) {
    return Wrong(what,
                 "a name of 1 to 240 characters of A-Z a-z 0-9 . _ - (NAME=DIR "
                 "gives a directory a name)",
                 out->name);
  }
  return Status::OK();
}

}  // namespace sstferry
