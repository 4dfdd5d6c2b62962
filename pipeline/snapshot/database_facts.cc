// Implements DescribeDatabase() of sstferry/source.h.

#include <algorithm>

#include "format/end_state.h"
#include "format/release.h"
#include "pipeline/options/seen_options.h"
#include "pipeline/snapshot/chunk_estimate.h"
#include "pipeline/snapshot/file_snapshot.h"
#include "pipeline/snapshot/retained_snapshots.h"
#include "pipeline/snapshot/snapshot_manifest.h"
#include "pipeline/snapshot/snapshot_place.h"
#include "pipeline/snapshot/snapshot_wal_place.h"
#include "sstferry/source.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// If the database changes during the search for its WALs, the search is
// repeated up to this number of times in total.
constexpr int kMaxLooks = 5;

// If these families cannot be cloned, sets *why to the reason.
Status FindNoClone(const std::string& directory, ManifestState state,
                   const OptionsText& options, const FactsOptions& asked,
                   std::string* why) {
  RocksDbRelease application;
  if (!asked.application.empty() &&
      !ParseRelease(asked.application, &application)) {
    return Status::OK();  // the pull itself refuses this release
  }
  std::erase_if(state.families, [&asked](const auto& family) {
    return !IsAmong(asked.families, family.second.name);
  });
  Status clonable = CheckClonable(directory, state, options);
  if (clonable.ok() && application.is_known()) {
    Needs needs;
    RETURN_IF_ERROR(ReadNeeds(directory, state, &needs));
    clonable = CheckOpens(needs, application);
  }
  *why = clonable.ok() ? "" : MessageOf(clonable);
  return Status::OK();
}

// Returns the modification time of the newest MANIFEST or WAL in `directory`,
// in seconds since 1970.
uint64_t WrittenSeconds(const std::string& directory) {
  constexpr uint64_t kNanos = 1'000'000'000;
  uint64_t latest = 0;
  std::vector<std::string> names;
  ListDirectory(directory, &names).PermitUncheckedError();
  for (const std::string& name : names) {
    if (name.starts_with("MANIFEST-") || name.ends_with(".log")) {
      FileId found;  // modified_ns stays 0 if the file cannot be looked up
      FileIdOfName(directory + "/" + name, &found).PermitUncheckedError();
      latest = std::max(latest, found.modified_ns / kNanos);
    }
  }
  return latest;
}

}  // namespace

Status DescribeDatabase(const ServedDatabase& database,
                        const FactsOptions& asked, DatabaseFacts* facts) {
  std::string directory;
  RETURN_IF_ERROR(ResolveDatabase(database.directory, &directory));
  ManifestTail manifest(directory);
  RETURN_IF_ERROR(manifest.Read());
  SeenOptions options(directory);
  std::string wals;
  Status found = Status::TryAgain();
  for (int looks = 0; found.IsTryAgain() && looks < kMaxLooks; ++looks) {
    found = options.Look();
    if (found.ok()) {
      found = FindWalDirectory(directory, database.wal_dir, options, &manifest,
                               &wals);
    }
  }
  if (found.IsTryAgain()) {
    return WithContext(found, EndState::kSourceError, directory);
  }
  RETURN_IF_ERROR(found);
  const OptionsText& text = options.newest();
  RETURN_IF_ERROR(CheckSnapshotPlace(
      directory, SnapshotParent(directory, asked.snapshot_dir),
      asked.snapshot_dir, /*command=*/""));
  *facts = DatabaseFacts();
  Status status =
      ReadDatabaseId(directory, manifest.state(), &facts->database_id);
  facts->sequence = manifest.state().last_sequence;
  facts->written_seconds =
      std::max(WrittenSeconds(directory), WrittenSeconds(wals));
  for (const auto& [id, family] : manifest.state().families) {
    if (!IsAmong(asked.families, family.name)) {
      continue;
    }
    ++facts->families;
    facts->files += family.files.size() + family.blobs.size();
    for (const auto& [number, file] : family.files) {
      facts->bytes += file.bytes;
    }
    for (const auto& [number, blob] : family.blobs) {
      facts->bytes += blob.total_bytes;
    }
  }
  if (asked.for_pull && status.ok()) {
    facts->chunk_bytes =
        EstimateChunkBytes(directory, manifest.state(), text, asked.families);
    status = FindNoClone(directory, manifest.state(), text, asked,
                         &facts->no_clone);
  }
  return status;
}

}  // namespace sstferry
