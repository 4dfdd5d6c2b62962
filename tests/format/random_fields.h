// Fills a message with random contents inside its bounds. Uses the same field
// description as the codec. Call it inside rc::check.
#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <string>

#include "format/journal_fields.h"

namespace sstferry {

// Returns an empty string, NULs, 0xff, arbitrary bytes or, rarely, a string of
// the maximum length.
inline std::string RandomBytes(uint32_t max_bytes) {
  const int kind = *rc::gen::inRange(0, 40);
  const uint32_t bytes =
      std::min<uint32_t>(max_bytes, *rc::gen::inRange<uint32_t>(0, 20));
  switch (kind) {
    case 0:
      return std::string(max_bytes, *rc::gen::arbitrary<char>());
    case 1:
    case 2:
    case 3:
      return std::string();
    case 4:
    case 5:
      return std::string(bytes, '\0');
    case 6:
    case 7:
      return std::string(bytes, '\xff');
    default:
      return *rc::gen::container<std::string>(bytes,
                                              rc::gen::arbitrary<char>());
  }
}

class FieldRandomizer {
 public:
  template <typename T>
  void Integer(const char*, T& value, uint64_t min, uint64_t max) {
    const uint64_t kind = *rc::gen::inRange<uint64_t>(0, 6);
    const uint64_t any = *rc::gen::arbitrary<T>();
    if (kind == 0) {
      value = static_cast<T>(max);
    } else if (kind == 1) {
      value = static_cast<T>(min);
    } else if (any >= min && any <= max) {
      value = static_cast<T>(any);
    } else {
      value = static_cast<T>(min + any % (max - min));
    }
  }
  void Bool(const char*, bool& value) { value = *rc::gen::arbitrary<bool>(); }
  template <typename E>
  void Enum(const char*, E& value, uint8_t max, const char* (*)(E)) {
    value = static_cast<E>(*rc::gen::inRange<int>(0, max + 1));
  }
  void Bytes(const char*, std::string& value, uint32_t max_bytes) {
    value = RandomBytes(max_bytes);
  }
  void Text(const char*, std::string& value, uint32_t max_bytes) {
    value = RandomBytes(max_bytes);
  }
  void OptionalBytes(const char*, std::optional<std::string>& value,
                     uint32_t max_bytes) {
    value.reset();
    if (*rc::gen::inRange(0, 3) != 0) {
      value = RandomBytes(max_bytes);
    }
  }
  template <size_t kBytes>
  void Id(const char*, std::array<uint8_t, kBytes>& value) {
    for (uint8_t& byte : value) {
      byte = *rc::gen::arbitrary<uint8_t>();
    }
  }
  void Digest(const char*, Digest128& value) {
    value.high = *rc::gen::arbitrary<uint64_t>();
    value.low = *rc::gen::arbitrary<uint64_t>();
  }
  void Check(const char*, bool, const char*) {}
  bool HasMore(bool) const { return true; }
  template <typename T, typename Each>
  void List(const char*, std::vector<T>& items, uint32_t, size_t, Each each) {
    items.resize(*rc::gen::inRange<size_t>(0, 4));
    for (T& item : items) {
      each(*this, item);
    }
  }
};

template <typename Message>
Message RandomMessage() {
  Message message;
  FieldRandomizer randomizer;
  Fields(randomizer, message);
  return message;
}

}  // namespace sstferry
