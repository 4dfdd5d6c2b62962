// Integers in table files. Decoding is bounded: each Get function consumes
// bytes from the front of *input; if *input does not contain the value, it
// returns false and leaves *input unchanged.
#pragma once

#include <cstdint>
#include <string>

#include "rocksdb/slice.h"

namespace sstferry::sst {

inline uint32_t DecodeLittle32(const char* p) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(p);
  return bytes[0] | (uint32_t{bytes[1]} << 8) | (uint32_t{bytes[2]} << 16) |
         (uint32_t{bytes[3]} << 24);
}

inline uint64_t DecodeLittle64(const char* p) {
  return DecodeLittle32(p) | (uint64_t{DecodeLittle32(p + 4)} << 32);
}

// Decodes LEB128 of at most ten bytes and 64 bits. Rejects encodings that are
// longer than needed, so that each value has one encoding; no writer makes
// longer ones.
inline bool GetVarint64(rocksdb::Slice* input, uint64_t* value) {
  uint64_t result = 0;
  for (size_t i = 0; i < input->size() && i < 10; ++i) {
    const auto byte = static_cast<unsigned char>((*input)[i]);
    if ((i == 9 && byte > 1) || (i > 0 && byte == 0)) {
      return false;
    }
    result |= uint64_t{byte & 0x7fu} << (7 * i);
    if (byte < 0x80) {
      input->remove_prefix(i + 1);
      *value = result;
      return true;
    }
  }
  return false;
}

inline bool GetVarint32(rocksdb::Slice* input, uint32_t* value) {
  if (!input->empty() && static_cast<unsigned char>((*input)[0]) < 0x80) {
    *value = static_cast<unsigned char>((*input)[0]);
    input->remove_prefix(1);
    return true;
  }
  rocksdb::Slice rest = *input;
  uint64_t wide = 0;
  if (!GetVarint64(&rest, &wide) || wide > UINT32_MAX) {
    return false;
  }
  *input = rest;
  *value = static_cast<uint32_t>(wide);
  return true;
}

inline void PutVarint64(std::string* out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) {
    out->push_back(static_cast<char>(value | 0x80));
  }
  out->push_back(static_cast<char>(value));
}

// Decodes zig-zag: 0, 1, 2, 3, ... become 0, -1, 1, -2, ...
inline bool GetSignedVarint64(rocksdb::Slice* input, int64_t* value) {
  uint64_t raw = 0;
  if (!GetVarint64(input, &raw)) {
    return false;
  }
  *value = static_cast<int64_t>((raw >> 1) ^ (~(raw & 1) + 1));
  return true;
}

// Formats a key for a message, in hex, truncated to 32 bytes.
inline std::string HexKey(const rocksdb::Slice& key) {
  constexpr size_t kShown = 32;
  const rocksdb::Slice head(key.data(), key.size() < kShown ? key.size()
                                                            : kShown);
  std::string text = "0x" + head.ToString(/*hex=*/true);
  if (key.size() > kShown) {
    text += "... (" + std::to_string(key.size()) + " bytes)";
  }
  return text;
}

// Formats a text for a message: unchanged, or in hex if it has unprintable
// characters.
inline std::string TextOrHex(const std::string& text) {
  for (const char c : text) {
    if (c < 0x20 || c == 0x7f) {
      return HexKey(text);
    }
  }
  return text;
}

}  // namespace sstferry::sst
