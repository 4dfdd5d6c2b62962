// Finds what of an unfinished pull is still there: compares its journal with
// the database's MANIFEST and with what lies in staging/.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "pipeline/pull/chunk_store.h"
#include "pipeline/pull/journal_state.h"
#include "pipeline/pull/lane_shared.h"
#include "pipeline/pull/part_scheduler.h"
#include "pipeline/pull/target_db.h"

namespace sstferry {

// Lists the parts that need not come, because this machine has their files.
struct ReusedParts {
  std::vector<uint32_t> linked;
  // Parts of `linked` that nothing but their bytes tells from others.
  std::vector<uint32_t> weak;
  // TARGET_DIR holds all that the source holds, and stays as it is.
  bool is_current = false;
};

struct ReceivedChunks {
  std::vector<PartStart> starts;  // by part id
  // Recorded, checked again and not yet in the database.
  std::vector<StagedChunk> staged;
  // A delta, or a unit, is all of its part: those whose end was not recorded.
  std::vector<JournalPartDone> ended;
  uint64_t chunks_built = 0;
  uint64_t chunks_delta = 0;
  uint64_t chunks_cloned = 0;
  uint64_t chunks_unchecked = 0;
  uint64_t chunks_lost = 0;  // recorded, but not there or damaged
  Totals totals;
  ReusedParts reused;  // by the unfinished pull
  // Names in staging/ that somebody waits for. Not set: nobody waits for any.
  std::optional<std::set<std::string>> waited_for;
};

// Returns the name of a chunk's file in staging/.
std::string StagedName(uint32_t part_id, uint32_t ordinal);

// Returns true if a recorded chunk is in the database.
using IsIngested =
    std::function<bool(const Part& part, const JournalChunk& chunk)>;

// Finds the chunks of a journal. One that is not in the database counts as
// received if its file in staging/, read whole, is what was recorded; where
// that fails, the chunk and those that follow it in its part count as never
// received.
// kCorrupt with `in_order`: a chunk is in the database without the one before.
[[nodiscard]] rocksdb::Status FindReceivedChunks(
    const JournalState& journal, const IsIngested& is_ingested, bool in_order,
    const std::vector<PullFamily>& families,
    rocksdb::FileSystem* file_system, const std::string& staging_dir,
    ReceivedChunks* received);

// Finds the chunks of a new database. One is in it when a live file of its
// family has its bounds and its size: the chunks of a family share no key.
//   kCorrupt   the database holds files of no record, or a chunk without the
//              one before it: not what a pull leaves
[[nodiscard]] rocksdb::Status FindReceivedChunks(
    const JournalState& journal, const TargetDb& db,
    const std::vector<PullFamily>& families,
    rocksdb::FileSystem* file_system, const std::string& staging_dir,
    ReceivedChunks* received);

}  // namespace sstferry
