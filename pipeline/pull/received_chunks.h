// Finds which chunks of an unfinished pull are still usable: compares its
// journal with the database's MANIFEST and with the files in staging/.
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
  // Parts of `linked` with a weak identity: only a comparison of their bytes
  // proves that they are the same.
  std::vector<uint32_t> weak;
  // TARGET_DIR is equal to the source, and stays as it is.
  bool is_current = false;
};

// The usable chunks of an unfinished pull, and their counts.
struct ReceivedChunks : LaneCounts {
  std::vector<PartStart> starts;  // by part id
  // Chunks that are recorded and were checked again, but are not in the
  // database yet.
  std::vector<StagedChunk> staged;
  // Parts that are complete although their end was not recorded: a delta or a
  // unit is the only chunk of its part.
  std::vector<JournalPartDone> ended;
  uint64_t chunks_lost = 0;  // recorded, but missing or damaged
  Totals totals;
  ReusedParts reused;  // reused by the unfinished pull
  // Names in staging/ that are still needed. Not set: no name is needed.
  std::optional<std::set<std::string>> waited_for;
};

// Returns the name of a chunk's file in staging/.
std::string StagedName(uint32_t part_id, uint32_t ordinal);

// Returns true if a recorded chunk is in the database.
using IsIngested =
    std::function<bool(const Part& part, const JournalChunk& chunk)>;

// Finds the chunks of a journal. A chunk that is not in the database counts as
// received if its file in staging/, read completely from the disk, matches its
// record. Otherwise that chunk and the later chunks of its part count as not
// received. kCorrupt with `in_order`: a chunk is in the database, but the chunk
// before it is not.
[[nodiscard]] rocksdb::Status FindReceivedChunks(
    const JournalState& journal, const IsIngested& is_ingested, bool in_order,
    const std::vector<PullFamily>& families,
    rocksdb::FileSystem* file_system, const std::string& staging_dir,
    ReceivedChunks* received);

// Finds the chunks of a new database. A chunk is in the database if a live file
// of its family has its bounds and its size, because chunks of a family share
// no key. With --durability none, that file is read completely from the disk,
// too: it may never have been synced, or a sync of it may have failed.
//   kCorrupt  the database has files without a record, or a chunk without the
//             chunk before it: no pull leaves such a state; or a chunk in the
//             database was lost
[[nodiscard]] rocksdb::Status FindReceivedChunks(
    const JournalState& journal, const TargetDb& db,
    const std::vector<PullFamily>& families,
    rocksdb::FileSystem* file_system, const std::string& staging_dir,
    ReceivedChunks* received);

}  // namespace sstferry
