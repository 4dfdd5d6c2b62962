// What a refresh adds to the messages of the control connection. See
// format/message/messages.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/message/messages_any.h"

namespace sstferry {

enum class TransferMode : uint8_t {
  kSeed = 0,     // into a new database: chunks hold entries, nothing else
  kRefresh = 1,  // into one that holds data: chunks replace their intervals
};

// What a range of the plan asks of the target.
enum class RangeNeed : uint8_t {
  kSend = 0,       // its chunks
  kCompare = 1,    // to compare digests, and its chunks if they differ
  kUnchanged = 2,  // nothing
};

// A family as the target has it before a refresh.
struct TargetFamily {
  std::string name;
  // Its outermost keys; absent: it is empty.
  std::optional<std::string> first;
  std::optional<std::string> last;
  friend bool operator==(const TargetFamily&, const TargetFamily&) = default;
};

// Bytes the item takes inside a TargetFamilies payload.
size_t EncodedBytes(const TargetFamily& item);

// Follows an OpenRequest for a refresh, as many messages as it takes.
struct TargetFamilies {
  std::vector<TargetFamily> families;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const TargetFamilies&,
                         const TargetFamilies&) = default;
};

// What a target remembers of an interval whose entries it got.
struct Cover {
  uint32_t family = 0;  // an index: of TargetFamilies, or of the plan
  KeyInterval interval;
  uint64_t sequence = 0;  // of the snapshot it came from; proves nothing
  // Entries of WALs lay over it, or may have.
  bool flushed = false;
  // The target cannot tell whether its entries are still those.
  bool doubted = false;
  // XXH3-128 over what the source's files over it show: which they are, and
  // which of them is the newer one where two overlap. See FORMAT.md.
  Digest128 backing;
  // Of all that the snapshot replayed; zero: not known, or not flushed.
  Digest128 wal;
  friend bool operator==(const Cover&, const Cover&) = default;
};

// Bytes the item takes inside a Covers payload.
size_t EncodedBytes(const Cover& item);

// To the source: what the target remembers, after TargetFamilies. To the
// target: what to remember once the transfer has succeeded.
struct Covers {
  std::vector<Cover> covers;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const Covers&, const Covers&) = default;
};

// Where a file of the target's last level ends: a chunk that ends there, too,
// is merged with whole files, none of which its neighbour has to rewrite.
struct TargetBound {
  uint32_t family = 0;  // an index of TargetFamilies
  std::string key;      // the file's largest
  friend bool operator==(const TargetBound&, const TargetBound&) = default;
};

// Bytes the item takes inside a TargetBounds payload.
size_t EncodedBytes(const TargetBound& item);

// Follows the Covers of a refresh.
struct TargetBounds {
  std::vector<TargetBound> bounds;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const TargetBounds&, const TargetBounds&) = default;
};

// All that a target tells of itself before a refresh is planned.
struct TargetMemory {
  std::vector<TargetFamily> families;
  std::vector<Cover> covers;  // Cover::family is an index of families
  std::vector<TargetBound> bounds;  // so is TargetBound::family; any order
  friend bool operator==(const TargetMemory&, const TargetMemory&) = default;
};

}  // namespace sstferry
