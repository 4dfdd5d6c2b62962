// Limits of a comparison, and faults for tests. Tests lower the limits so that
// small databases reach them. Tests also inject faults, to show that
// refresh/part_proof.h detects every fault.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "format/limits.h"
#include "format/messages_any.h"

namespace sstferry {

// Maximum number of entries in one index, and maximum total size of their keys.
inline constexpr uint64_t kMaxIndexEntries = 1u << 20;
inline constexpr uint64_t kMaxIndexKeyBytes = 32u << 20;

// Limits of one index.
struct IndexLimits {
  uint64_t entries = kMaxIndexEntries;
  uint64_t key_bytes = kMaxIndexKeyBytes;
  uint64_t groups = kMaxGroups;
};

// Steps of a comparison in which a test may inject a fault.
enum class CompareFault {
  kIndexLacksEntry,     // drops an entry of the target
  kGroupTakenForEqual,  // treats a differing group as equal
  kMarkBelieved,        // treats an entry as equal that only the target has
  kSiftedAway,          // treats an entry as equal that only the source has
  kEntryNotTold,        // drops the last entry of a message
  kPutLeftOut,
  kDeletionLeftOut,
  kRangeTooShort,
};

struct CompareTuning {
  IndexLimits index;
  uint64_t marks = kMaxMarks;  // maximum in one SiftRequest
  // Minimum number of entries for which marks are sent first. For fewer
  // entries, marks would save little, so the entries are sent at once.
  uint64_t few_entries = 256;
  size_t message_bytes = kBatchBytes;  // one message of a DeltaRequest
  // Returns true if the caller must now inject the fault. Threads: any.
  std::function<bool(CompareFault)> plants;
};

// Returns this process's settings. Only TuningOfComparisons() and
// SetTuningOfComparisons() call it.
inline CompareTuning& TuningOfProcess() {
  static CompareTuning tuning;
  return tuning;
}
// Returns the settings that all comparisons in this process use.
inline const CompareTuning& TuningOfComparisons() { return TuningOfProcess(); }
// Changes the settings, for tests. REQUIRES: no comparison runs.
inline void SetTuningOfComparisons(CompareTuning tuning) {
  TuningOfProcess() = std::move(tuning);
}

inline bool IsPlanted(CompareFault fault) {
  const CompareTuning& tuning = TuningOfComparisons();
  return tuning.plants && tuning.plants(fault);
}

}  // namespace sstferry
