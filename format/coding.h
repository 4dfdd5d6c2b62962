// Little-endian integers and length-prefixed byte strings in memory.
//
// Writers append to a std::string and cannot fail. The Decoder reads untrusted
// bytes: it compares each length with its limit and with the remaining bytes
// before it allocates anything, and it keeps the first error.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

void EncodeFixed16(char* out, uint16_t value);
void EncodeFixed32(char* out, uint32_t value);
void EncodeFixed64(char* out, uint64_t value);
uint16_t DecodeFixed16(const char* in);
uint32_t DecodeFixed32(const char* in);
uint64_t DecodeFixed64(const char* in);

void PutFixed8(std::string* out, uint8_t value);
void PutFixed16(std::string* out, uint16_t value);
void PutFixed32(std::string* out, uint32_t value);
void PutFixed64(std::string* out, uint64_t value);
// Appends a fixed32 length, then the bytes. REQUIRES: data.size() < 2^32.
void PutBytes(std::string* out, const rocksdb::Slice& data);

// Returns true if all bytes are 0, or if there are no bytes.
bool AllZero(const rocksdb::Slice& bytes);

// Returns lower-case hex digits, two per byte.
std::string ToHex(const rocksdb::Slice& data);

// Reads one structure from front to back.
//
// Ownership: borrows the input and all names; returned slices point into the
//   input.
// Errors:    the Decoder keeps the first error. After an error, every read
//   returns zero or an empty slice and does not advance. Messages have the form
//   "Parts: parts[3].id: expected at most 7, found 9, offset 12".
class Decoder {
 public:
  // `what` is the name of the structure in messages. Offsets in messages start
  // at `base_offset`.
  Decoder(const char* what, const rocksdb::Slice& input,
          uint64_t base_offset = 0);

  uint32_t Fixed32(const char* field);
  uint64_t Fixed64(const char* field);
  // Reads an integer of `width` bytes (1, 2, 4 or 8), between `min` and `max`.
  uint64_t Bounded(const char* field, size_t width, uint64_t min,
                   uint64_t max);
  // Reads exactly `bytes` raw bytes.
  rocksdb::Slice Raw(const char* field, size_t bytes);
  // Reads a fixed32 length, at most `max_bytes`, then this many bytes.
  rocksdb::Slice Bytes(const char* field, uint32_t max_bytes);
  // Reads a fixed32 count of items, at most `max_count`. Each item has at least
  // `min_item_bytes` bytes. If so many items cannot fit into the remaining
  // bytes, records an error.
  uint32_t Count(const char* field, uint32_t max_count, size_t min_item_bytes);

  // Makes later messages call a field "list[index].field". If `list` is null,
  // later messages call it "field" again.
  void EnterItem(const char* list, size_t index);

  // Returns "field", or "list[index].field" inside a list.
  std::string Path(const char* field) const;

  // Records Corruption "what: field: problem, offset N", unless an error is
  // already recorded.
  void Fail(const char* field, const std::string& problem);

  bool ok() const { return !failed_; }
  uint64_t offset() const { return base_offset_ + position_; }
  size_t remaining() const { return input_.size() - position_; }
  // Returns the input bytes from `offset` to the current position.
  rocksdb::Slice Since(uint64_t offset) const;

  // Returns the first error, or Corruption if unread bytes remain.
  [[nodiscard]] rocksdb::Status Finish();

 private:
  // Returns the next `bytes` bytes, or null after recording an error.
  const char* Take(const char* field, size_t bytes);
  void FailAt(const char* field, const std::string& problem, uint64_t at);

  const char* what_;
  rocksdb::Slice input_;
  uint64_t base_offset_;
  size_t position_ = 0;
  const char* list_ = nullptr;
  size_t index_ = 0;
  bool failed_ = false;
  std::string error_;
};

}  // namespace sstferry
