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

// Returns true if the source makes the bytes while it sends them, so that it
// cannot read the same bytes a second time.
inline bool IsBuilt(PartKind kind) {
  return kind == PartKind::kRebuilt || kind == PartKind::kDelta;
}

// The way in which a target gets a part. For both kSend and kCompare, a refresh
// first looks at the target: if the target has entries, both sides compare; if
// it has none, the source sends the part.
enum class PartNeed : uint8_t {
  kSend = 0,       // the source does not know what the target has
  kCompare = 1,    // by digests of groups, and a delta if they differ
  kUnchanged = 2,  // the target has it
  kLookup = 3,     // a delta: the source knows which keys may have changed
};
inline constexpr uint8_t kMaxPartNeed = 3;

// The only work item of a transfer: keys of a column family, or bytes of a
// file.
struct Part {
  uint32_t id = 0;  // 0, 1, ... across the whole transfer
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
  uint64_t bytes = 0;  // of a unit: exact, at least 1; else estimated
  bool is_unit() const { return kind == PartKind::kUnit; }
  friend bool operator==(const Part&, const Part&) = default;
};

}  // namespace sstferry
