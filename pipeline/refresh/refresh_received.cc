// Finds which chunks of an unfinished refresh the database already has.
#include <algorithm>
#include <set>

#include "format/coding.h"
#include "format/end_state.h"
#include "pipeline/pull/live_tables.h"
#include "pipeline/refresh/refresh_target.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Unique ids of the tables of each family. The set of a missing family is
// empty.
using LiveIds = std::vector<std::set<std::string>>;

Status ListLiveIds(rocksdb::DB* db, const std::vector<FamilyHandle>& families,
                   LiveIds* ids) {
  for (const FamilyHandle& family : families) {
    std::vector<LiveTable> tables;
    RETURN_IF_ERROR(family.handle == nullptr
                        ? Status::OK()
                        : ListLiveTables(db, family.handle, &tables));
    ids->emplace_back();
    for (const LiveTable& table : tables) {
      ids->back().insert(table.id ? ToHex(*table.id) : "not known");
    }
  }
  return Status::OK();
}

// Returns true if the chunk is known to be ingested. The MANIFEST lists the
// chunk's table until a compaction rewrites it. Later, only the journal shows
// the ingestion, and it may not do so if the machine crashed right after the
// ingestion. If neither shows it, the chunk is sent and ingested again. The
// result is the same, but uses one more level.
bool IsIngestedOne(const JournalState& journal, const LiveIds& live,
                   const Part& part, const JournalChunk& chunk) {
  const std::optional<Digest128> id = TableIdOf(chunk);
  return journal.ingested[part.id][chunk.chunk.ordinal] ||
         (id && live[part.family].count(ToHex(*id)) != 0);
}

// Returns true if all chunks are ingested. REQUIRES: the journal says Complete,
// after which one call ingests all chunks. So one chunk that is known to be
// ingested proves that all are. A chunk that is missing in staging/ proves
// nothing.
bool IsAllIngested(const JournalState& journal, const LiveIds& live) {
  return std::any_of(
      journal.plan.parts.begin(), journal.plan.parts.end(),
      [&](const Part& part) {
        const std::vector<JournalChunk>& chunks = journal.chunks[part.id];
        return std::any_of(chunks.begin(), chunks.end(),
                           [&](const JournalChunk& chunk) {
                             return IsIngestedOne(journal, live, part, chunk);
                           });
      });
}

// Finds the tables that are chunks of a journal. Also tells if these tables
// include all chunks that the journal records as ingested.
class OwnTables {
 public:
  explicit OwnTables(const JournalState& journal) {
    for (const Part& part : journal.plan.parts) {
      const std::vector<JournalChunk>& chunks = journal.chunks[part.id];
      for (size_t i = 0; i < chunks.size(); ++i) {
        const std::optional<Digest128> id = TableIdOf(chunks[i]);
        if (id) {
          chunks_.insert(ToHex(*id));
        }
        if (journal.ingested[part.id][i]) {
          missing_.insert(id ? ToHex(*id) : "not known");
        }
      }
    }
  }

  // Removes the tables that are chunks of the journal from *listed.
  void TakeFrom(std::vector<FamilyTables>* listed) {
    for (FamilyTables& family : *listed) {
      std::erase_if(family.tables, [this](const LiveTable& table) {
        const std::string id = table.id ? ToHex(*table.id) : "";
        missing_.erase(id);
        return chunks_.count(id) != 0;
      });
    }
  }
  bool all_there() const { return missing_.empty(); }

 private:
  std::set<std::string> chunks_;
  std::set<std::string> missing_;
};

}  // namespace

JournalTargetFiles RefreshTarget::FilesOf(
    const std::vector<FamilyTables>& listed, rocksdb::DB* db) {
  std::vector<std::string> texts;
  for (const FamilyTables& family : listed) {
    if (family.is_unflushed) {
      texts.push_back(family.name);
    }
    for (const LiveTable& table : family.tables) {
      std::string text;
      PutBytes(&text, family.name);
      PutBytes(&text, table.name);
      PutBytes(&text, table.id ? ToHex(*table.id) : "");
      PutFixed64(&text, table.bytes);
      PutFixed64(&text, table.smallest_sequence);
      PutFixed64(&text, table.largest_sequence);
      texts.push_back(std::move(text));
    }
  }
  std::sort(texts.begin(), texts.end());
  std::string all;
  for (const std::string& text : texts) {
    PutBytes(&all, text);
  }
  return {DatabaseIdOf(db), DigestOf(all)};
}

// Returns true if nobody else has changed the database since the journal began:
// apart from the journal's own chunks, the tables are the same. Writes,
// ingestions and compactions change the tables.
bool RefreshTarget::IsAsLeft(const JournalState& journal) const {
  std::vector<FamilyTables> begun_with = tables_;
  OwnTables chunks(journal);
  chunks.TakeFrom(&begun_with);
  JournalTargetFiles now = FilesOf(begun_with, live_->db());
  if (now.database_id.empty() || !chunks.all_there()) {
    return false;
  }
  now.database_id += origin();
  return journal.target_files == now;
}

// Resumes the journal's plan. Compares the tables once more, now that this
// process holds the LOCK: another process may have written to the database
// since ReadExisting(). Received chunks stay in staging/ until one call ingests
// all chunks.
Status RefreshTarget::Reopen(
    const std::shared_ptr<rocksdb::FileSystem>& file_system,
    const JournalState& unfinished, ReceivedChunks* received) {
  RETURN_IF_ERROR(OpenToWrite());
  if (!IsAsLeft(unfinished)) {
    return MakeStatus(EndState::kCorrupt,
                      "another process wrote to the target since the "
                      "unfinished pull stopped");
  }
  RETURN_IF_ERROR(CreateFamilies());
  LiveIds live;
  RETURN_IF_ERROR(ListLiveIds(live_->db(), planned_, &live));
  const bool all = unfinished.complete && IsAllIngested(unfinished, live);
  Status status = FindReceivedChunks(
      unfinished,
      [&](const Part& part, const JournalChunk& chunk) {
        return all || IsIngestedOne(unfinished, live, part, chunk);
      },
      /*in_order=*/false, lanes()->families, file_system.get(),
      lanes()->staging_dir, received);
  received->waited_for.emplace();
  for (const StagedChunk& chunk : received->staged) {
    const ChunkEnd& end = chunk.record.chunk;
    received->waited_for->insert(StagedName(end.part_id, end.ordinal));
  }
  return status;
}

}  // namespace sstferry
