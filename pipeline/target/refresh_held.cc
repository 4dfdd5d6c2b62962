// What an unfinished refresh left in the database.
#include <algorithm>
#include <set>

#include "pipeline/target/live_tables.h"
#include "pipeline/target/refresh_target.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Unique ids of the files of each family; of one that is not there, none.
using LiveIds = std::vector<std::set<std::string>>;

Status ListLiveIds(rocksdb::DB* db, const std::vector<FamilyHandle>& families,
                   LiveIds* ids) {
  for (const FamilyHandle& family : families) {
    std::vector<LiveTable> tables;
    const Status status = family.handle == nullptr
                              ? Status::OK()
                              : ListLiveTables(db, family.handle, &tables);
    if (!status.ok()) {
      return status;
    }
    ids->emplace_back();
    for (const LiveTable& table : tables) {
      ids->back().insert(table.id ? ToHex(*table.id) : "not known");
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

// The same of all that is recorded of a family.
std::set<std::string> KnownIds(const CoverFile& record,
                               const std::string& family) {
  std::set<std::string> ids;
  for (const CoveredFamily& covered : record.families) {
    for (const CoveredTable& table : covered.files) {
      if (covered.name == family) {
        ids.insert(ToHex(table.id));
      }
    }
  }
  return ids;
}

// Whether the files of a family are those of the record and of chunks. Those
// of chunks that are not known to have been ingested may be missing.
bool HoldsWhatIsKnown(const JournalState& journal, uint32_t family,
                      const std::set<std::string>& live,
                      std::set<std::string> known) {
  std::set<std::string> may_be = known;
  for (const Range& range : journal.ranges) {
    for (const JournalChunk& chunk : journal.chunks[range.id]) {
      const std::optional<Digest128> id = TableIdOf(chunk);
      if (range.family != family || !id) {
        continue;
      }
      may_be.insert(ToHex(*id));
      if (journal.ingested[range.id][chunk.chunk.ordinal]) {
        known.insert(ToHex(*id));
      }
    }
  }
  return std::includes(may_be.begin(), may_be.end(), live.begin(),
                       live.end()) &&
         std::includes(live.begin(), live.end(), known.begin(), known.end());
}

}  // namespace

// Compactions change files and no sequence; writes to other column families,
// and a crash right behind an ingestion, change the sequence and no files.
Status RefreshTarget::CheckAsLeft(const JournalState& journal, bool* as_left) {
  *as_left = !judged_at_.database_id.empty() &&
             journal.target_sequence == judged_at_;
  if (*as_left) {
    return Status::OK();
  }
  std::vector<FamilyHandle> families;
  for (const Family& family : journal.families) {
    const std::string& name = family.description.name;
    families.push_back({name, live_->Find(name)});
  }
  LiveIds live;
  const Status status = ListLiveIds(live_->db(), families, &live);
  *as_left = status.ok();
  for (uint32_t i = 0; i < families.size() && *as_left; ++i) {
    *as_left = HoldsWhatIsKnown(journal, i, live[i],
                                KnownIds(record_, families[i].name));
  }
  return status;
}

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
