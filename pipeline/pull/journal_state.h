// Reads the journal of an unfinished pull: at the start of the next one, and
// for whoever wants to know how far it came.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/journal.h"
#include "format/plan.h"
#include "rocksdb/file_system.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// A journal is read whole; a million chunks make about 300 MB.
inline constexpr uint64_t kMaxJournalBytes = 1ull << 30;

struct JournalState {
  JournalTransfer head;
  Plan plan;
  // By part id: the chunks recorded, by ordinal.
  std::vector<std::vector<JournalChunk>> chunks;
  // The same: which of them are known to have been ingested.
  std::vector<std::vector<bool>> ingested;
  // Lists what the target of a refresh held when it was judged, if that is
  // known.
  std::optional<JournalTargetFiles> target_files;
  // By part id: every chunk of the part has its record.
  std::vector<bool> whole;
  bool complete = false;
  uint64_t bytes = 0;  // of whole records; a torn tail may follow
  bool torn = false;

  Totals ReceivedTotals(uint32_t part_id) const;
  Totals ReceivedTotals() const;
  // Returns how many of the plan's bytes are recorded.
  uint64_t planned_bytes_done() const;
};

Totals TotalsOf(const std::vector<JournalChunk>& chunks);

// OK           *state is what the whole records say
// Incomplete   there is no whole head: nothing to go on from
// Corruption   damaged, or records that contradict each other
[[nodiscard]] rocksdb::Status ParseJournalState(const rocksdb::Slice& journal,
                                                JournalState* state);

// The same of a file, which is only read. NotFound when there is none.
[[nodiscard]] rocksdb::Status ReadJournalState(rocksdb::FileSystem* file_system,
                                               const std::string& path,
                                               JournalState* state);

}  // namespace sstferry
