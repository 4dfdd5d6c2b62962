#include "format/coding.h"

#include <algorithm>

#include "format/end_state.h"
#include "format/types.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

template <typename T>
void EncodeLittleEndian(char* out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    out[i] = static_cast<char>(value >> (8 * i));
  }
}

uint64_t DecodeLittleEndian(const char* in, size_t width) {
  uint64_t value = 0;
  for (size_t i = 0; i < width; ++i) {
    value |= uint64_t{static_cast<uint8_t>(in[i])} << (8 * i);
  }
  return value;
}

template <typename T>
void PutLittleEndian(std::string* out, T value) {
  char buffer[sizeof(T)];
  EncodeLittleEndian(buffer, value);
  out->append(buffer, sizeof(buffer));
}

}  // namespace

void EncodeFixed16(char* out, uint16_t value) {
  EncodeLittleEndian(out, value);
}
void EncodeFixed32(char* out, uint32_t value) {
  EncodeLittleEndian(out, value);
}
void EncodeFixed64(char* out, uint64_t value) {
  EncodeLittleEndian(out, value);
}
uint16_t DecodeFixed16(const char* in) {
  return static_cast<uint16_t>(DecodeLittleEndian(in, 2));
}
uint32_t DecodeFixed32(const char* in) {
  return static_cast<uint32_t>(DecodeLittleEndian(in, 4));
}
uint64_t DecodeFixed64(const char* in) { return DecodeLittleEndian(in, 8); }

void PutFixed8(std::string* out, uint8_t value) {
  out->push_back(static_cast<char>(value));
}
void PutFixed16(std::string* out, uint16_t value) {
  PutLittleEndian(out, value);
}
void PutFixed32(std::string* out, uint32_t value) {
  PutLittleEndian(out, value);
}
void PutFixed64(std::string* out, uint64_t value) {
  PutLittleEndian(out, value);
}

void PutBytes(std::string* out, const Slice& data) {
  PutFixed32(out, static_cast<uint32_t>(data.size()));
  out->append(data.data(), data.size());
}

bool AllZero(const Slice& bytes) {
  return std::all_of(bytes.data(), bytes.data() + bytes.size(),
                     [](char byte) { return byte == 0; });
}

std::string ToHex(const Slice& data) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(data.size() * 2);
  for (size_t i = 0; i < data.size(); ++i) {
    const uint8_t byte = static_cast<uint8_t>(data[i]);
    hex.push_back(kDigits[byte >> 4]);
    hex.push_back(kDigits[byte & 15]);
  }
  return hex;
}

std::string ToHex(const TransferId& id) {
  return ToHex(Slice(reinterpret_cast<const char*>(id.data()), id.size()));
}

Decoder::Decoder(const char* what, const Slice& input, uint64_t base_offset)
    : what_(what), input_(input), base_offset_(base_offset) {}

const char* Decoder::Take(const char* field, size_t bytes) {
  if (failed_) {
    return nullptr;
  }
  if (remaining() < bytes) {
    Fail(field, "expected " + std::to_string(bytes) + " bytes, found " +
                    std::to_string(remaining()));
    return nullptr;
  }
  const char* taken = input_.data() + position_;
  position_ += bytes;
  return taken;
}

uint32_t Decoder::Fixed32(const char* field) {
  const char* in = Take(field, 4);
  return in == nullptr ? 0 : DecodeFixed32(in);
}
uint64_t Decoder::Fixed64(const char* field) {
  const char* in = Take(field, 8);
  return in == nullptr ? 0 : DecodeFixed64(in);
}

uint64_t Decoder::Bounded(const char* field, size_t width, uint64_t min,
                          uint64_t max) {
  const uint64_t at = offset();
  const char* in = Take(field, width);
  if (in == nullptr) {
    return 0;
  }
  const uint64_t value = DecodeLittleEndian(in, width);
  if (value < min || value > max) {
    const std::string bound = value > max
                                  ? "at most " + std::to_string(max)
                                  : "at least " + std::to_string(min);
    FailAt(field, "expected " + bound + ", found " + std::to_string(value),
           at);
    return 0;
  }
  return value;
}

Slice Decoder::Raw(const char* field, size_t bytes) {
  const char* in = Take(field, bytes);
  return in == nullptr ? Slice() : Slice(in, bytes);
}

Slice Decoder::Bytes(const char* field, uint32_t max_bytes) {
  const uint64_t at = offset();
  const uint32_t bytes = Fixed32(field);
  if (ok() && bytes > max_bytes) {
    FailAt(field,
           "expected at most " + std::to_string(max_bytes) +
               " bytes, found a length of " + std::to_string(bytes),
           at);
  }
  return Raw(field, bytes);
}

uint32_t Decoder::Count(const char* field, uint32_t max_count,
                        size_t min_item_bytes) {
  const uint64_t at = offset();
  const uint32_t count = Fixed32(field);
  if (ok() && (count > max_count || count > remaining() / min_item_bytes)) {
    FailAt(field,
           "expected at most " + std::to_string(max_count) + " items in " +
               std::to_string(remaining()) + " bytes, found a count of " +
               std::to_string(count),
           at);
  }
  return ok() ? count : 0;
}

void Decoder::EnterItem(const char* list, size_t index) {
  list_ = list;
  index_ = index;
}

std::string Decoder::Path(const char* field) const {
  if (list_ == nullptr) {
    return field;
  }
  return std::string(list_) + "[" + std::to_string(index_) + "]." + field;
}

void Decoder::Fail(const char* field, const std::string& problem) {
  FailAt(field, problem, offset());
}

void Decoder::FailAt(const char* field, const std::string& problem,
                     uint64_t at) {
  if (failed_) {
    return;
  }
  failed_ = true;
  error_ = std::string(what_) + ": " + Path(field) + ": " + problem +
           ", offset " + std::to_string(at);
}

Slice Decoder::Since(uint64_t offset) const {
  const size_t begin = static_cast<size_t>(offset - base_offset_);
  return Slice(input_.data() + begin, position_ - begin);
}

Status Decoder::Finish() {
  list_ = nullptr;
  if (ok() && remaining() > 0) {
    Fail("end",
         "expected no more bytes, found " + std::to_string(remaining()));
  }
  return ok() ? Status::OK() : MakeStatus(EndState::kCorrupt, error_);
}

}  // namespace sstferry
