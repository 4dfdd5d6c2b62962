// Reads the journal of an unfinished pull: at the start of the next run, and to
// report how far the pull got.
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

// Maximum size of a journal, which is read as a whole. A million chunks need
// about 300 MB.
inline constexpr uint64_t kMaxJournalBytes = 1ull << 30;

// The contents of a journal.
struct JournalState {
  JournalTransfer head;
  Plan plan;
  // The recorded chunks, indexed by part id and then by ordinal.
  std::vector<std::vector<JournalChunk>> chunks;
  // Indexed by part id and ordinal: true if the chunk is known to be ingested.
  std::vector<std::vector<bool>> ingested;
  // The target's files when a refresh began, or the origin of a clone's links;
  // nullopt if neither is recorded.
  std::optional<JournalTargetFiles> target_files;
  // Indexed by part id: true if every chunk of the part is recorded.
  std::vector<bool> whole;
  bool complete = false;
  uint64_t bytes = 0;  // size of the complete records
  bool torn = false;   // an incomplete record follows them

  Totals ReceivedTotals(uint32_t part_id) const;
  Totals ReceivedTotals() const;
  // Returns how many of the plan's bytes have been received according to the
  // records.
  uint64_t planned_bytes_done() const;
};

Totals TotalsOf(const std::vector<JournalChunk>& chunks);

// Parses a journal.
//   OK          *state has the contents of the complete records
//   Incomplete  the head is incomplete, so there is nothing to resume
//   Corruption  the journal is damaged, or its records contradict each other
[[nodiscard]] rocksdb::Status ParseJournalState(const rocksdb::Slice& journal,
                                                JournalState* state);

// Parses the journal file `path`, without changing it. If the file belongs to
// another account than this process's account and root, clears the head's
// command_line: a command that another account has chosen must not be offered.
//   NotFound  no such file
[[nodiscard]] rocksdb::Status ReadJournalState(rocksdb::FileSystem* file_system,
                                               const std::string& path,
                                               JournalState* state);

}  // namespace sstferry
