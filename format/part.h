// The work items of a transfer.
#pragma once

#include <cstdint>

#include "format/types.h"

namespace sstferry {

// The content of a part and its chunks.
enum class PartKind : uint8_t {
  kRebuilt = 0,  // chunks of consecutive keys
  kUnit = 1,     // bytes of a file of a clone
  // A chunk of puts and deletions that the target applies to its data. A part
  // has one such chunk. If the part is compared in pieces, each piece has at
  // most one.
  kDelta = 2,
};
inline constexpr uint8_t kMaxPartKind = 2;

// Returns true if the source builds the bytes while it sends them. It cannot
// build the same bytes a second time.
inline bool IsBuilt(PartKind kind) {
  return kind == PartKind::kRebuilt || kind == PartKind::kDelta;
}

// How the source expects a target to get a part. In both cases, a refresh first
// reads the target. If the target has entries in the part, both sides compare
// them; otherwise the source sends the part.
enum class PartNeed : uint8_t {
  kSend = 0,     // the target seems to have nothing
  kCompare = 1,  // compare digests of groups; delta if they differ
};
inline constexpr uint8_t kMaxPartNeed = 1;

// A work item of a transfer: keys of a column family, or bytes of a file.
struct Part {
  uint32_t id = 0;  // 0, 1, ... across the transfer
  PartKind kind = PartKind::kRebuilt;
  PartNeed need = PartNeed::kSend;
  // Index of the family, and the keys, if the part is not a unit. A unit has
  // the default values.
  uint32_t family = 0;
  KeyInterval interval;
  // Index of the file in the plan, and the bytes, if the part is a unit. Other
  // parts have the default values.
  uint32_t file = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;  // exact and at least 1 for a unit; otherwise estimated
  bool is_unit() const { return kind == PartKind::kUnit; }
  friend bool operator==(const Part&, const Part&) = default;
};

}  // namespace sstferry
