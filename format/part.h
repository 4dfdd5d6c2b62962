// The work items of a transfer.
#pragma once

#include <cstdint>

#include "format/types.h"

namespace sstferry {

// The content of a part and its chunks.
enum class PartKind : uint8_t {
  kRebuilt = 0,  // chunks of consecutive keys
  kUnit = 1,     // bytes of a file of a clone
  // A chunk of puts and deletions to apply to the target's data. If the part is
  // compared in pieces, each piece has at most one such chunk; otherwise the
  // part has only this chunk.
  kDelta = 2,
};
inline constexpr uint8_t kMaxPartKind = 2;

// Returns true if the source builds the bytes while it sends them, so that it
// cannot produce the same bytes again.
inline bool IsBuilt(PartKind kind) {
  return kind == PartKind::kRebuilt || kind == PartKind::kDelta;
}

// How a target gets a part. For both kSend and kCompare, a refresh first reads
// the target: if the target has entries, both sides compare; otherwise the
// source sends the part.
enum class PartNeed : uint8_t {
  kSend = 0,     // the target seems to have nothing
  kCompare = 1,  // by digests of groups, and a delta if they differ
};
inline constexpr uint8_t kMaxPartNeed = 1;

// The only work item of a transfer: keys of a column family, or bytes of a
// file.
struct Part {
  uint32_t id = 0;  // 0, 1, ... across the transfer
  PartKind kind = PartKind::kRebuilt;
  PartNeed need = PartNeed::kSend;
  // The keys of a part that is not a unit, in the family with this index. A
  // unit has the default values.
  uint32_t family = 0;
  KeyInterval interval;
  // The bytes of a unit, in the file with this index in the plan. Other parts
  // have the default values.
  uint32_t file = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;  // exact and at least 1 for a unit; else estimated
  bool is_unit() const { return kind == PartKind::kUnit; }
  friend bool operator==(const Part&, const Part&) = default;
};

}  // namespace sstferry
