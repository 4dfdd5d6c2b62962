#include "pipeline/snapshot/snapshot.h"

#include <filesystem>
#include <system_error>

#include "format/end_state.h"
#include "pipeline/snapshot/file_snapshot.h"
#include "pipeline/snapshot/pinned_files.h"
#include "pipeline/snapshot/retained_snapshots.h"
#include "pipeline/snapshot/posix_files.h"
#include "pipeline/snapshot/private_dir.h"
#include "pipeline/snapshot/snapshot_copy.h"
#include "pipeline/snapshot/snapshot_place.h"
#include "rocksdb/merge_operator.h"

namespace sstferry {
namespace {

namespace fs = std::filesystem;
using rocksdb::ColumnFamilyHandle;
using rocksdb::DB;
using rocksdb::Status;

// Takes the snapshot in the private directory `dir`. If `pinned` is not null,
// it describes files that are already in db/. Otherwise copies the source's
// files now.
template <typename Kind>
Status Taken(const SnapshotOptions& options, std::unique_ptr<PrivateDir> dir,
             const SnapshotFiles* pinned, std::unique_ptr<Snapshot>* result) {
  dir->set_log([log = options.log](const std::string& line) {
    if (log) log(LogLevel::kWarning, line);
  });
  Status status = pinned != nullptr ? Status::OK() : dir->Clear();
  auto snapshot = std::make_unique<Kind>(std::move(dir));
  if (status.ok()) status = snapshot->Fill(options, pinned);
  if (status.ok()) *result = std::move(snapshot);
  return status;
}

template <typename Kind>
Status Adopted(const SnapshotOptions& options, const RetainedState& state,
               std::unique_ptr<PrivateDir> dir,
               std::unique_ptr<Snapshot>* result) {
  dir->set_log([log = options.log](const std::string& line) {
    if (log) log(LogLevel::kWarning, line);
  });
  auto snapshot = std::make_unique<Kind>(std::move(dir));
  Status status = snapshot->Reopen(options, state);
  if (status.ok() && snapshot->sequence() != state.sequence) {
    status = MakeStatus(EndState::kCorrupt,
                        "expected sequence " + std::to_string(state.sequence) +
                            ", found " + std::to_string(snapshot->sequence()));
  }
  if (status.ok()) {
    *result = std::move(snapshot);
    return status;
  }
  if (status.IsAborted()) {
    return status;
  }
  snapshot->Keep(false);  // no other process could open it either
  return MakeStatus(EndState::kSnapshotGone,
                    "the snapshot cannot be opened again: " +
                        MessageOf(status));
}

}  // namespace

Status MakePrivateDir(const SnapshotOptions& options,
                      std::unique_ptr<PrivateDir>* dir) {
  const std::string name =
      fs::path(options.database_dir).filename().string();
  const std::string parent =
      SnapshotParent(options.database_dir, options.snapshot_dir);
  RETURN_IF_ERROR(CheckSnapshotPlace(options.database_dir, parent,
                                     options.snapshot_dir, /*command=*/""));
  if (!options.snapshot_dir.empty()) {
    RETURN_IF_ERROR(MakeSnapshotParent(parent));
  }
  return PrivateDir::Create(parent, name.empty() ? "root" : name, dir);
}

Status Snapshot::Look(const SnapshotOptions& options,
                      std::unique_ptr<Snapshot>* result) {
  std::string real;
  RETURN_IF_ERROR(ResolveDatabase(options.database_dir, &real));
  auto snapshot = std::make_unique<FileSnapshot>(real);
  Status status = snapshot->Look(options);
  if (status.ok()) {
    *result = std::move(snapshot);
  }
  return WithContext(status, EndState::kSourceError, options.database_dir);
}

Status Snapshot::Create(const SnapshotOptions& options,
                        std::unique_ptr<Snapshot>* result) {
  SnapshotOptions resolved = options;
  // Resolves symbolic links first. Otherwise the private directory would be
  // next to the link, perhaps on another file system.
  RETURN_IF_ERROR(
      ResolveDatabase(options.database_dir, &resolved.database_dir));
  RemoveLeftovers(SnapshotParent(resolved.database_dir, resolved.snapshot_dir),
                  options.log);
  std::unique_ptr<PrivateDir> dir;
  RETURN_IF_ERROR(MakePrivateDir(resolved, &dir));
  return options.as_files
             ? Taken<FileSnapshot>(resolved, std::move(dir), nullptr, result)
             : Taken<SnapshotCopy>(resolved, std::move(dir), nullptr, result);
}

Status Snapshot::OfPinned(const SnapshotOptions& options,
                          const PinnedFiles& pinned,
                          std::unique_ptr<Snapshot>* result) {
  std::unique_ptr<PrivateDir> dir;
  RETURN_IF_ERROR(PrivateDir::CreateLinked(pinned.dir().path(),
                                           pinned.dir().own_path(), &dir,
                                           /*copies_wals=*/true));
  SnapshotOptions resolved = options;
  resolved.database_dir = RealPath(options.database_dir);
  return options.as_files
             ? Taken<FileSnapshot>(resolved, std::move(dir), &pinned.files(),
                                   result)
             : Taken<SnapshotCopy>(resolved, std::move(dir), &pinned.files(),
                                   result);
}

Status Snapshot::Adopt(const SnapshotOptions& options,
                       const RetainedState& state,
                       std::unique_ptr<PrivateDir> dir,
                       std::unique_ptr<Snapshot>* result) {
  return options.as_files
             ? Adopted<FileSnapshot>(options, state, std::move(dir), result)
             : Adopted<SnapshotCopy>(options, state, std::move(dir), result);
}

Status Snapshot::FromOpenDatabase(
    DB* db, const std::vector<ColumnFamilyHandle*>& families,
    const SnapshotOptions& options, std::unique_ptr<Snapshot>* result) {
  SnapshotOptions resolved = options;
  resolved.database_dir = db->GetName();
  const rocksdb::DBOptions open = db->GetDBOptions();
  resolved.wal_dir = open.wal_dir.empty() ? db->GetName() : open.wal_dir;
  if (!open.db_paths.empty()) {
    resolved.table_dirs.push_back(RealPath(open.db_paths.front().path));
  }
  for (ColumnFamilyHandle* family : families) {
    resolved.registry.comparators.push_back(family->GetComparator());
    const rocksdb::Options own = db->GetOptions(family);
    if (own.merge_operator != nullptr) {
      resolved.registry.merge_operators.push_back(own.merge_operator);
    }
    if (!own.cf_paths.empty()) {
      resolved.table_dirs.push_back(RealPath(own.cf_paths.front().path));
    }
  }
  // RocksDB flushes all families in this call, atomically if atomic_flush is
  // set.
  std::vector<std::string> unused;
  uint64_t manifest_bytes = 0;
  Status status = db->GetLiveFiles(unused, &manifest_bytes, true);
  if (status.ok()) {
    status = db->FlushWAL(false);
  }
  return status.ok() ? Create(resolved, result)
                     : WithContext(status, EndState::kSourceError,
                                   "cannot flush " + db->GetName());
}

}  // namespace sstferry
