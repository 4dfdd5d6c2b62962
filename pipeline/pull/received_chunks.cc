#include "pipeline/pull/received_chunks.h"

#include <unordered_map>

#include "format/end_state.h"
#include "pipeline/pull/chunk_check.h"
#include "rocksdb/metadata.h"

namespace sstferry {
namespace {

using rocksdb::Status;

struct LiveFile {
  std::string largest;
  uint64_t bytes = 0;
  std::string path;
};

// The live files of one family, by smallest key.
using LiveFiles = std::unordered_map<std::string, LiveFile>;

Status Damaged(const std::string& what) {
  return MakeStatus(EndState::kCorrupt, "the unfinished database: " + what);
}

std::vector<LiveFiles> ListLiveFiles(const TargetDb& db, size_t families) {
  std::vector<LiveFiles> live(families);
  for (size_t i = 0; i < families; ++i) {
    rocksdb::ColumnFamilyMetaData metadata;
    db.db()->GetColumnFamilyMetaData(db.handle(i), &metadata);
    for (const rocksdb::LevelMetaData& level : metadata.levels) {
      for (const rocksdb::SstFileMetaData& file : level.files) {
        live[i][file.smallestkey] = {
            file.largestkey, file.size,
            file.directory + "/" + file.relative_filename};
      }
    }
  }
  return live;
}

// Removes the chunk's file from `live`, and sets *path to the path of the file.
// Returns false if `live` does not contain the file.
bool TakeLive(const ChunkEnd& chunk, LiveFiles* live, std::string* path) {
  const auto found = live->find(chunk.smallest);
  if (found == live->end() || found->second.largest != chunk.largest ||
      found->second.bytes != chunk.file_bytes) {
    return false;
  }
  *path = found->second.path;
  live->erase(found);
  return true;
}

// Returns true if the chunk's file matches its record, reading the bytes on the
// disk. Returns false for a file without checksums in its blocks, because
// nothing proves that it is intact.
bool IsOnDisk(rocksdb::FileSystem* file_system, const PullFamily& family,
              const StagedChunk& recorded) {
  StagedChunk found = recorded;
  uint64_t bytes = 0;
  return !recorded.record.unchecked &&
         CheckStagedChunk(file_system, family, /*from_disk=*/true, &found)
             .ok() &&
         found.record == recorded.record &&
         file_system
             ->GetFileSize(recorded.path, rocksdb::IOOptions(), &bytes, nullptr)
             .ok() &&
         bytes == recorded.record.chunk.file_bytes;
}

class Finder {
 public:
  Finder(const JournalState& journal, const IsIngested& is_ingested,
         bool in_order, const std::vector<PullFamily>& families,
         rocksdb::FileSystem* file_system, const std::string& staging_dir,
         ReceivedChunks* received)
      : journal_(journal),
        is_ingested_(is_ingested),
        in_order_(in_order),
        families_(families),
        file_system_(file_system),
        staging_dir_(staging_dir),
        received_(received) {}

  Status Run() {
    received_->starts.resize(journal_.plan.parts.size());
    for (const Part& part : journal_.plan.parts) {
      RETURN_IF_ERROR(AddPart(part));
    }
    return Status::OK();
  }

 private:
  Status AddPart(const Part& part) {
    const std::vector<JournalChunk>& chunks = journal_.chunks[part.id];
    PartStart& start = received_->starts[part.id];
    bool in_database = true;
    std::vector<StagedChunk> staged;
    size_t at = 0;
    for (; at < chunks.size(); ++at) {
      StagedChunk chunk;
      chunk.family = part.family;
      chunk.record = chunks[at];
      chunk.path = staging_dir_ + "/" +
                   StagedName(part.id, chunk.record.chunk.ordinal);
      if (is_ingested_(part, chunk.record)) {
        if (!in_database && in_order_) {
          return Damaged("chunk " + std::to_string(at) + " of part " +
                         std::to_string(part.id) +
                         " is present without the chunk before it");
        }
      } else if (IsOnDisk(file_system_, families_[part.family], chunk)) {
        in_database = false;
        staged.push_back(std::move(chunk));
      } else {
        break;
      }
    }
    start.whole = journal_.whole[part.id] && at == chunks.size();
    if (!start.whole && IsCompared(chunks)) {
      at = 0;
      staged.clear();
    }
    received_->staged.insert(received_->staged.end(), staged.begin(),
                             staged.end());
    received_->chunks_lost += chunks.size() - at;
    const std::vector<JournalChunk> kept(chunks.begin(), chunks.begin() + at);
    start.received = TotalsOf(kept);
    start.last_key = kept.empty() ? "" : kept.back().chunk.largest;
    received_->totals += start.received;
    for (const JournalChunk& chunk : kept) {
      Count(chunk);
    }
    return Status::OK();
  }

  // Returns true if the part received deltas after comparisons. The journal
  // does not say which piece was the last one. So such a part is compared again
  // unless it was complete.
  static bool IsCompared(const std::vector<JournalChunk>& chunks) {
    return !chunks.empty() && chunks.front().kind == PartKind::kDelta;
  }

  void Count(const JournalChunk& record) {
    (record.kind == PartKind::kDelta ? received_->chunks_delta
                                      : received_->chunks_built)++;
  }

  const JournalState& journal_;
  const IsIngested& is_ingested_;
  const bool in_order_;
  const std::vector<PullFamily>& families_;
  rocksdb::FileSystem* const file_system_;
  const std::string staging_dir_;
  ReceivedChunks* const received_;
};

}  // namespace

std::string StagedName(uint32_t part_id, uint32_t ordinal) {
  return std::to_string(part_id) + "-" + std::to_string(ordinal) + ".sst";
}

Status FindReceivedChunks(const JournalState& journal,
                          const IsIngested& is_ingested, bool in_order,
                          const std::vector<PullFamily>& families,
                          rocksdb::FileSystem* file_system,
                          const std::string& staging_dir,
                          ReceivedChunks* received) {
  *received = ReceivedChunks();
  return Finder(journal, is_ingested, in_order, families, file_system,
                staging_dir, received)
      .Run();
}

Status FindReceivedChunks(const JournalState& journal, const TargetDb& db,
                          const std::vector<PullFamily>& families,
                          rocksdb::FileSystem* file_system,
                          const std::string& staging_dir,
                          ReceivedChunks* received) {
  std::vector<LiveFiles> live = ListLiveFiles(db, families.size());
  std::string lost;  // path of a lost file
  RETURN_IF_ERROR(FindReceivedChunks(
      journal,
      [&](const Part& part, const JournalChunk& chunk) {
        StagedChunk found;
        found.record = chunk;
        if (!TakeLive(chunk.chunk, &live[part.family], &found.path)) {
          return false;
        }
        // Only a pull with --durability none records a chunk before it is
        // synced.
        if (!journal.head.durable && lost.empty() &&
            !IsOnDisk(file_system, families[part.family], found)) {
          lost = found.path;
        }
        return true;
      },
      /*in_order=*/true, families, file_system, staging_dir, received));
  if (!lost.empty()) {
    return Damaged(lost + ": expected the received chunk on the disk, found "
                          "other bytes");
  }
  for (const LiveFiles& files : live) {
    if (!files.empty()) {
      return Damaged("expected no file without a record, found " +
                     std::to_string(files.size()));
    }
  }
  return Status::OK();
}

}  // namespace sstferry
