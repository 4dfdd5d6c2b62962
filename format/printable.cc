#include "format/printable.h"

#include <array>
#include <cstdint>
#include <cstdio>

namespace sstferry {
namespace {

using rocksdb::Slice;

// Returns the length of the well-formed UTF-8 sequence at the start of `text`,
// and its code point; 0 if the sequence is not well-formed.
size_t SequenceLength(const Slice& text, uint32_t* code) {
  const auto byte = [&text](size_t i) {
    return static_cast<unsigned char>(text[i]);
  };
  const unsigned char lead = byte(0);
  *code = lead;
  if (lead < 0x80) {
    return 1;
  }
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) {
    return 0;
  }
  *code = lead & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) {
      return 0;
    }
    *code = *code << 6 | (byte(i) & 0x3f);
  }
  const bool is_overlong = (length == 3 && *code < 0x800) ||
                           (length == 4 && *code < 0x10000);
  const bool is_surrogate = *code >= 0xd800 && *code <= 0xdfff;
  return is_overlong || is_surrogate || *code > 0x10ffff ? 0 : length;
}

bool IsPrintable(uint32_t code) {
  const auto within = [code](uint32_t first, uint32_t last) {
    return code >= first && code <= last;
  };
  return !(code < 0x20 || within(0x7f, 0x9f) || code == 0x61c ||
           within(0x200e, 0x200f) || within(0x2028, 0x202e) ||
           within(0x2066, 0x2069));
}

std::string Cleaned(const std::string& text, bool keep_line_ends) {
  std::string clean;
  clean.reserve(text.size());
  for (Slice rest(text); !rest.empty();) {
    const size_t length = PrintableLength(rest);
    if (length > 0) {
      clean.append(rest.data(), length);
    } else {
      clean.push_back(keep_line_ends && rest[0] == '\n' ? '\n' : '?');
    }
    rest.remove_prefix(length > 0 ? length : 1);
  }
  return clean;
}

}  // namespace

size_t PrintableLength(const Slice& text) {
  uint32_t code = 0;
  const size_t length = SequenceLength(text, &code);
  return length > 0 && IsPrintable(code) ? length : 0;
}

std::string Printable(const std::string& text) { return Cleaned(text, false); }

std::string PrintableLines(const std::string& text) {
  return Cleaned(text, true);
}

std::string PrintableJson(const std::string& text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (Slice rest(text); !rest.empty();) {
    uint32_t code = 0;
    const size_t length = SequenceLength(rest, &code);
    if (length > 0 && !IsPrintable(code) && code >= 0x7f) {
      // All code points that are not printable are below 0x10000.
      std::array<char, 12> unit{};
      std::snprintf(unit.data(), unit.size(), "\\u%04x", code);
      escaped += unit.data();
    } else {
      escaped.append(rest.data(), length > 0 ? length : 1);
    }
    rest.remove_prefix(length > 0 ? length : 1);
  }
  return escaped;
}

}  // namespace sstferry
