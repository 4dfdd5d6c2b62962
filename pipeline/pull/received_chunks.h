// Finds which chunks of an unfinished pull are still usable. Compares the
// pull's journal with the database's MANIFEST and with the files in staging/.
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

// Parts that need not be sent, because this machine has their files.
struct ReusedParts {
  std::vector<uint32_t> linked;
  // The parts of `linked` with a weak identity. Only a comparison of their
  // bytes proves that they are equal to the source's.
  std::vector<uint32_t> weak;
  // True if TARGET_DIR already equals the source, so that the pull leaves it.
  bool is_current = false;
};

// The usable chunks of an unfinished pull, and their counts.
struct ReceivedChunks : LaneCounts {
  std::vector<PartStart> starts;  // by part id
  // Chunks that are recorded and intact, but not in the database yet.
  std::vector<StagedChunk> staged;
  // Units that are complete, although the journal does not record them as done:
  // a unit is the only chunk of its part. Empty unless this is a clone.
  std::vector<JournalPartDone> ended;
  uint64_t chunks_lost = 0;  // recorded chunks that are missing or damaged
  Totals totals;
  ReusedParts reused;  // reused by the unfinished pull
  // Names of the files in staging/ that are still needed; nullopt: none.
  std::optional<std::set<std::string>> waited_for;
};

// Returns the name of a chunk's file in staging/.
std::string StagedName(uint32_t part_id, uint32_t ordinal);

// Returns true if a recorded chunk is in the database.
using IsIngested =
    std::function<bool(const Part& part, const JournalChunk& chunk)>;

// Finds the chunks of a journal that are still usable. A chunk counts as
// received if it is in the database. It also counts as received if its file in
// staging/ matches its record; for this, the file is read completely from the
// disk. Any other chunk counts as not received, as do all later chunks of its
// part.
//   kCorrupt  `in_order` is true, and a chunk is in the database without the
//             chunk before it
[[nodiscard]] rocksdb::Status FindReceivedChunks(
    const JournalState& journal, const IsIngested& is_ingested, bool in_order,
    const std::vector<PullFamily>& families,
    rocksdb::FileSystem* file_system, const std::string& staging_dir,
    ReceivedChunks* received);

// Finds the chunks of a new database that are still usable. A chunk is in the
// database if a live file of its family has the same bounds and size. That is
// sufficient, because chunks of a family share no key. With --durability none,
// the file is also read completely from the disk, because a sync of it may be
// missing or may have failed.
//   kCorrupt  the database has files without a record, or a chunk without the
//             chunk before it (no pull leaves such a state), or a file of a
//             chunk was lost
[[nodiscard]] rocksdb::Status FindReceivedChunks(
    const JournalState& journal, const TargetDb& db,
    const std::vector<PullFamily>& families,
    rocksdb::FileSystem* file_system, const std::string& staging_dir,
    ReceivedChunks* received);

}  // namespace sstferry
