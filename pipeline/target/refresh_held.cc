// What an unfinished refresh left in the database.
#include <set>

#include "pipeline/target/live_tables.h"
#include "pipeline/target/refresh_target.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Unique ids of the files of each family.
using LiveIds = std::vector<std::set<std::string>>;

Status ListLiveIds(rocksdb::DB* db, const std::vector<FamilyHandle>& families,
                   LiveIds* ids) {
  for (const FamilyHandle& family : families) {
    std::vector<LiveTable> tables;
    const Status status = ListLiveTables(db, family.handle, &tables);
    if (!status.ok()) {
      return status;
    }
    ids->emplace_back();
    for (const LiveTable& table : tables) {
      if (table.id) {
        ids->back().insert(ToHex(*table.id));
      }
    }
  }
  return Status::OK();
}

// A chunk that was ingested may have been compacted away since; then the
// journal knows, unless the machine went down right behind it. Chunks that
// neither knows, come and are ingested again: right, but a level higher.
bool IsIngestedOne(const JournalState& journal, const LiveIds& live,
                   const Range& range, const JournalChunk& chunk) {
  const std::optional<Digest128> id = TableIdOf(chunk);
  return journal.ingested[range.id][chunk.chunk.ordinal] ||
         (id && live[range.family].count(ToHex(*id)) != 0);
}

// One call made all of them visible, after Complete: one that is there, or is
// no longer in staging/, says that all are.
bool IsAllIngested(const JournalState& journal, const LiveIds& live,
                   rocksdb::FileSystem* file_system,
                   const std::string& staging_dir) {
  for (const Range& range : journal.ranges) {
    for (const JournalChunk& chunk : journal.chunks[range.id]) {
      const std::string path =
          staging_dir + "/" + StagedName(range.id, chunk.chunk.ordinal);
      if (IsIngestedOne(journal, live, range, chunk) ||
          file_system->FileExists(path, rocksdb::IOOptions(), nullptr)
              .IsNotFound()) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

Status RefreshTarget::FindHeld(const JournalState& journal, HeldChunks* held) {
  LiveIds live;
  const Status status = ListLiveIds(live_->db(), planned_, &live);
  if (!status.ok()) {
    return status;
  }
  rocksdb::FileSystem* const file_system = context().file_system.get();
  const bool all = !by_chunk() && journal.complete &&
                   IsAllIngested(journal, live, file_system,
                                 state()->staging_dir);
  return FindHeldChunks(
      journal,
      [&](const Range& range, const JournalChunk& chunk) {
        return all || IsIngestedOne(journal, live, range, chunk);
      },
      /*in_order=*/false, state()->families, file_system,
      state()->staging_dir, held);
}

}  // namespace sstferry
