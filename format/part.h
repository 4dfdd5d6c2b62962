// The work items of a transfer.
#pragma once

#include <cstdint>

#include "format/types.h"

namespace sstferry {

// How a part is made, and what its chunks are.
enum class PartKind : uint8_t {
  kRebuilt = 0,  // chunks of consecutive keys
  kUnit = 1,     // bytes of a file of a clone
  // A chunk of puts and deletions above what the target has. Where the part is
  // compared in pieces, each piece has at most one; else it is the only chunk
  // of its part.
  kDelta = 2,
};
inline constexpr uint8_t kMaxPartKind = 2;

// True if the source makes the bytes while it sends them, so that it cannot
// read the same bytes a second time.
inline bool IsBuilt(PartKind kind) {
  return kind == PartKind::kRebuilt || kind == PartKind::kDelta;
}

// Says how a target gets a part. With kSend and kCompare alike, a refresh looks
// first: where it has something, both sides compare; where it has nothing, the
// bytes come.
enum class PartNeed : uint8_t {
  kSend = 0,       // the source knows nothing of what the target has
  kCompare = 1,    // by digests of groups, and a delta if they differ
  kUnchanged = 2,  // it has it
  kLookup = 3,     // a delta: the source knows which keys may have changed
};
inline constexpr uint8_t kMaxPartNeed = 3;

// The only work item of a transfer: keys of a column family, or bytes of a
// file.
struct Part {
  uint32_t id = 0;  // 0, 1, ... across the whole transfer
  PartKind kind = PartKind::kRebuilt;
  PartNeed need = PartNeed::kSend;
  // Where it lies, unless it is a unit: keys of Family::index. A unit leaves
  // these as they are here.
  uint32_t family = 0;
  KeyInterval interval;
  // Where a unit lies: in the file with this index in the plan. Others leave
  // these as they are here.
  uint32_t file = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;  // of a unit: exactly, at least 1; of others: estimated
  bool is_unit() const { return kind == PartKind::kUnit; }
  friend bool operator==(const Part&, const Part&) = default;
};

}  // namespace sstferry
