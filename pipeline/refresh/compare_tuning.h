// Has the bounds of a comparison, and where tests make it go wrong. A test takes
// small bounds, so that small databases meet each of them, and plants faults, to
// see that none of them gets past refresh/part_proof.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "format/limits.h"
#include "format/messages_any.h"

namespace sstferry {

// Entries of a part of which an index keeps keys.
inline constexpr uint64_t kMaxIndexEntries = 1u << 20;
inline constexpr uint64_t kMaxIndexKeyBytes = 32u << 20;

// Bounds what one index holds.
struct IndexLimits {
  uint64_t entries = kMaxIndexEntries;
  uint64_t key_bytes = kMaxIndexKeyBytes;
  uint64_t groups = kMaxGroups;
};

// Steps that a test may make wrong.
enum class CompareFault {
  kIndexLacksEntry,     // an entry that the target reads
  kGroupTakenForEqual,  // one that the source does not have
  kMarkBelieved,        // of an entry that the source does not have
  kSiftedAway,          // an entry that the target does not have
  kEntryNotTold,        // at the end of a message
  kPutLeftOut,
  kDeletionLeftOut,
  kRangeTooShort,
};

struct CompareTuning {
  IndexLimits index;
  uint64_t marks = kMaxMarks;  // of one SiftRequest
  // Fewer entries than that are told at once: asking first would save little.
  uint64_t few_entries = 256;
  size_t message_bytes = kBatchBytes;  // of one message of a DeltaRequest
  // Returns true if this step is to go wrong now. Any thread.
  std::function<bool(CompareFault)> plants;
};

// Returns what all comparisons of this process go by.
const CompareTuning& TuningOfComparisons();
// Sets it. REQUIRES: no comparison runs. For tests alone.
void SetTuningOfComparisons(CompareTuning tuning);

inline bool IsPlanted(CompareFault fault) {
  const CompareTuning& tuning = TuningOfComparisons();
  return tuning.plants && tuning.plants(fault);
}

}  // namespace sstferry
