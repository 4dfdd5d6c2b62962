// A snapshot whose files are read unchanged. RocksDB does not open it, so it
// needs no comparator, no merge operator and no recovery.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pipeline/snapshot/private_dir.h"
#include "pipeline/snapshot/snapshot.h"
#include "pipeline/snapshot/snapshot_manifest.h"
#include "pipeline/snapshot/snapshot_replay.h"

namespace sstferry {

// Checks that all files of `state` are in `directory`, and that no program
// other than RocksDB stores values there.
//   kRefused  a clone cannot contain the database
[[nodiscard]] rocksdb::Status CheckClonable(const std::string& directory,
                                            const ManifestState& state);
// Adds what the tables and blob files of `state` require of the RocksDB that
// opens them. Skips tables that were removed meanwhile.
[[nodiscard]] rocksdb::Status ReadNeeds(const std::string& directory,
                                        const ManifestState& state,
                                        Needs* needs);
// Checks that the application's RocksDB (unknown: any release) can open files
// with these needs. The process that receives a clone does not open its files.
//   kIncompatible  it is too old
[[nodiscard]] rocksdb::Status CheckOpens(const Needs& needs,
                                         const RocksDbRelease& application);

// Removes from *state the column families that are not in `wanted` (empty:
// keeps all), and from *files their tables and blob files. Keeps files that
// belong to no family, because RocksDB may need them.
//   kRefused  a wanted family does not exist
[[nodiscard]] rocksdb::Status KeepFamilies(
    const std::vector<std::string>& wanted, ManifestState* state,
    std::vector<CloneFile>* files);
// Note for the operator: if a clone has only some families, its WALs contain
// entries of all families.
extern const char kWalsOfAllFamilies[];

// A snapshot that is read as files. Ownership and threads are as for Snapshot.
// db() is null, and families() have only their names.
class FileSnapshot : public Snapshot {
 public:
  explicit FileSnapshot(std::unique_ptr<PrivateDir> dir)
      : Snapshot(dir->path(), dir->own_path()),
        dir_(std::move(dir)),
        db_(dir_->db()) {}
  // Makes a snapshot only for Look(), which uses the files of `database_dir`
  // itself.
  explicit FileSnapshot(const std::string& database_dir)
      : Snapshot(database_dir, database_dir), db_(database_dir) {}

  // Takes the snapshot. If `pinned` is not null, uses the files that it
  // describes, which are already in the directory. Returns the errors of
  // Snapshot::Create(), but accepts unknown comparators, merge operators and
  // transactions.
  [[nodiscard]] rocksdb::Status Fill(const SnapshotOptions& options,
                                     const SnapshotFiles* pinned);
  // Reads the snapshot in a directory that another process left behind.
  [[nodiscard]] rocksdb::Status Reopen(const SnapshotOptions& options,
                                       const RetainedState& state);
  [[nodiscard]] rocksdb::Status Look(const SnapshotOptions& options) {
    return Describe(options);
  }

  void Keep(bool keep) override {
    if (dir_ != nullptr) dir_->Keep(keep);
  }
  rocksdb::DB* db() const override { return nullptr; }
  const ClonedFiles* files() const override { return &files_; }

 private:
  // Reads all facts from the files.
  [[nodiscard]] rocksdb::Status Describe(const SnapshotOptions& options);
  [[nodiscard]] rocksdb::Status ListFiles();
  [[nodiscard]] rocksdb::Status ReadManifest(const ManifestTail& manifest,
                                             const ManifestState& kept);
  [[nodiscard]] rocksdb::Status ReadTables(const ManifestState& manifest);
  // Reads one table; adds its entry count to *entries.
  [[nodiscard]] rocksdb::Status ReadTable(const ManifestFile& known,
                                          CloneFile* file, uint64_t* entries);
  [[nodiscard]] rocksdb::Status ReadWals(const ManifestState& state,
                                         WalContents* wals);
  // Computes the content digest. Called after the functions above.
  void TellContent(const ManifestState& manifest, const WalContents& wals);

  const std::unique_ptr<PrivateDir> dir_;  // null for Look()
  const std::string db_;                   // directory of the files
  ClonedFiles files_;
};

}  // namespace sstferry
