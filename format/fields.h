// The field list of a message serves its encoder, its decoder and the annotated
// dump. It is a function template Fields(archive, message), which lists each
// field once, in order, with its limits. The `archive` (a parameter, not a
// store of backups) encodes, decodes or prints each field. The field lists are
// in format/message_fields.h, format/message_fields_lane.h and
// format/journal_fields.h.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "format/codec.h"
#include "format/coding.h"
#include "format/digest.h"

namespace sstferry {

// Accepts T and const T as M, so that one Fields() can both read and write.
template <typename M, typename T>
concept FieldsOf = std::same_as<std::remove_const_t<M>, T>;

// An archive that appends encoded fields to a string.
class FieldEncoder {
 public:
  explicit FieldEncoder(std::string* out) : out_(out) {}

  template <std::unsigned_integral T>
  void Integer(const char*, T value, uint64_t, uint64_t max) {
    assert(value <= max);
    static_cast<void>(max);
    char bytes[8];
    EncodeFixed64(bytes, value);
    out_->append(bytes, sizeof(T));
  }
  void Bool(const char*, bool value) { PutFixed8(out_, value ? 1 : 0); }
  template <typename E>
  void Enum(const char*, E value, uint8_t, const char* (*)(E)) {
    PutFixed8(out_, static_cast<uint8_t>(value));
  }
  void Bytes(const char*, const std::string& value, uint32_t max_bytes) {
    assert(value.size() <= max_bytes);
    static_cast<void>(max_bytes);
    PutBytes(out_, value);
  }
  // Encodes a text for display, truncated to max_bytes.
  void Text(const char*, const std::string& value, uint32_t max_bytes) {
    PutBytes(out_, rocksdb::Slice(value.data(),
                                  std::min<size_t>(value.size(), max_bytes)));
  }
  void OptionalBytes(const char* name, const std::optional<std::string>& value,
                     uint32_t max_bytes) {
    PutFixed8(out_, value.has_value() ? 1 : 0);
    if (value.has_value()) {
      Bytes(name, *value, max_bytes);
    }
  }
  template <size_t kBytes>
  void Id(const char*, const std::array<uint8_t, kBytes>& value) {
    out_->append(reinterpret_cast<const char*>(value.data()), value.size());
  }
  void Digest(const char*, const Digest128& value) {
    PutFixed64(out_, value.low);
    PutFixed64(out_, value.high);
  }
  template <typename T, typename Each>
  void List(const char*, const std::vector<T>& items, uint32_t max_count,
            size_t, Each each) {
    assert(items.size() <= max_count);
    static_cast<void>(max_count);
    PutFixed32(out_, static_cast<uint32_t>(items.size()));
    for (const T& item : items) {
      each(*this, item);
    }
  }
  // Does nothing. Only an archive that reads fields checks rules between
  // fields.
  void Check(const char*, bool, const char*) {}
  // Returns true if the message has the optional fields that a later release
  // added at its end. `wanted`: at least one of these fields is used.
  bool HasMore(bool wanted) const { return wanted; }

 private:
  std::string* out_;
};

// An archive that reads fields through a Decoder, which keeps the first error.
class FieldDecoder {
 public:
  explicit FieldDecoder(Decoder* in) : in_(in) {}

  template <std::unsigned_integral T>
  void Integer(const char* name, T& value, uint64_t min, uint64_t max) {
    value = static_cast<T>(in_->Bounded(name, sizeof(T), min, max));
  }
  void Bool(const char* name, bool& value) {
    value = in_->Bounded(name, 1, 0, 1) != 0;
  }
  template <typename E>
  void Enum(const char* name, E& value, uint8_t max, const char* (*)(E)) {
    value = static_cast<E>(in_->Bounded(name, 1, 0, max));
  }
  void Bytes(const char* name, std::string& value, uint32_t max_bytes) {
    const rocksdb::Slice bytes = in_->Bytes(name, max_bytes);
    value.assign(bytes.data(), bytes.size());
  }
  void Text(const char* name, std::string& value, uint32_t max_bytes) {
    Bytes(name, value, max_bytes);
  }
  void OptionalBytes(const char* name, std::optional<std::string>& value,
                     uint32_t max_bytes) {
    value.reset();
    if (in_->Bounded(name, 1, 0, 1) != 0) {
      Bytes(name, value.emplace(), max_bytes);
    }
  }
  template <size_t kBytes>
  void Id(const char* name, std::array<uint8_t, kBytes>& value) {
    const rocksdb::Slice bytes = in_->Raw(name, value.size());
    if (in_->ok()) {
      memcpy(value.data(), bytes.data(), value.size());
    }
  }
  void Digest(const char* name, Digest128& value) {
    value.low = in_->Fixed64(name);
    value.high = in_->Fixed64(name);
  }
  template <typename T, typename Each>
  void List(const char* name, std::vector<T>& items, uint32_t max_count,
            size_t min_item_bytes, Each each) {
    ListWith(*this, name, items, max_count, min_item_bytes, each);
  }

  // Implements List() for an archive that wraps this one.
  template <typename Archive, typename T, typename Each>
  void ListWith(Archive& archive, const char* name, std::vector<T>& items,
                uint32_t max_count, size_t min_item_bytes, Each each) {
    items.clear();
    const uint32_t count = in_->Count(name, max_count, min_item_bytes);
    items.reserve(count);
    for (uint32_t i = 0; i < count && in_->ok(); ++i) {
      in_->EnterItem(name, i);
      each(archive, items.emplace_back());
    }
    in_->EnterItem(nullptr, 0);
  }
  void Check(const char* name, bool holds, const char* problem) {
    if (!holds) {
      in_->Fail(name, problem);
    }
  }
  bool HasMore(bool) const { return in_->ok() && in_->remaining() > 0; }

 private:
  Decoder* in_;
};

template <typename Archive, typename T>
void Number(Archive& archive, const char* name, T& value,
            uint64_t max = std::numeric_limits<T>::max(), uint64_t min = 0) {
  archive.Integer(name, value, min, max);
}

template <typename Message>
void Encode(const Message& message, std::string* out) {
  FieldEncoder encoder(out);
  Fields(encoder, message);
}

template <typename Message>
rocksdb::Status Decode(const rocksdb::Slice& payload, Message* message) {
  Decoder in(Message::kName, payload);
  FieldDecoder decoder(&in);
  Fields(decoder, *message);
  return in.Finish();
}

// Instantiates Encode() and Decode() for a message. Use it in the only .cc file
// that includes the message's Fields().
#define SSTFERRY_CODEC(Message)                        \
  template void Encode(const Message&, std::string*);  \
  template rocksdb::Status Decode(const rocksdb::Slice&, Message*);

}  // namespace sstferry
