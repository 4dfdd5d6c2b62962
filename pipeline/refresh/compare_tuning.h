// Limits of a comparison, and faults for tests. Tests set small limits, which
// small databases can reach, and inject faults, which refresh/part_proof.h must
// detect.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "format/limits.h"
#include "format/messages_any.h"

namespace sstferry {

// Maximum number of keys in one index, and of their bytes.
inline constexpr uint64_t kMaxIndexEntries = 1u << 20;
inline constexpr uint64_t kMaxIndexKeyBytes = 32u << 20;

// Limits of one index.
struct IndexLimits {
  uint64_t entries = kMaxIndexEntries;
  uint64_t key_bytes = kMaxIndexKeyBytes;
  uint64_t groups = kMaxGroups;
};

// Steps in which a test may inject a fault.
enum class CompareFault {
  kIndexLacksEntry,     // drops an entry that the target reads
  kGroupTakenForEqual,  // treats a missing group as equal
  kMarkBelieved,        // treats an entry that only the target has as equal
  kSiftedAway,          // treats an entry that only the source has as equal
  kEntryNotTold,        // leaves out the last entry of a message
  kPutLeftOut,
  kDeletionLeftOut,
  kRangeTooShort,
};

struct CompareTuning {
  IndexLimits index;
  uint64_t marks = kMaxMarks;  // per SiftRequest
  // Fewer entries than this are sent without sifting, which would save little.
  uint64_t few_entries = 256;
  size_t message_bytes = kBatchBytes;  // per message of a DeltaRequest
  // Returns true if the fault is to be injected now. Called from any thread.
  std::function<bool(CompareFault)> plants;
};

// Returns the settings for the two functions below.
inline CompareTuning& TuningOfProcess() {
  static CompareTuning tuning;
  return tuning;
}
// Returns the settings of all comparisons in this process.
inline const CompareTuning& TuningOfComparisons() { return TuningOfProcess(); }
// Changes the settings. REQUIRES: no comparison runs. For tests only.
inline void SetTuningOfComparisons(CompareTuning tuning) {
  TuningOfProcess() = std::move(tuning);
}

inline bool IsPlanted(CompareFault fault) {
  const CompareTuning& tuning = TuningOfComparisons();
  return tuning.plants && tuning.plants(fault);
}

}  // namespace sstferry
