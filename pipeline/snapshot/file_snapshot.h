// A snapshot for clones, whose files are sent unchanged. RocksDB does not open
// the snapshot. So this process does not need the application's comparator and
// merge operator, and replays no WALs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pipeline/options/options_text.h"
#include "pipeline/snapshot/private_dir.h"
#include "pipeline/snapshot/snapshot.h"
#include "pipeline/snapshot/snapshot_manifest.h"
#include "pipeline/snapshot/snapshot_replay.h"

namespace sstferry {

// Checks that `directory` has all files of `state`, and that no program other
// than RocksDB (a stacked BlobDB, Titan) keeps values in files of its own.
// Finds such a program by its directories in `directory`, by the tables'
// entries in the MANIFEST, and by the OPTIONS.
//   kRefused  the database cannot be cloned
[[nodiscard]] rocksdb::Status CheckClonable(const std::string& directory,
                                            const ManifestState& state,
                                            const OptionsText& options);
// Adds to *needs what a RocksDB must support to open the tables and blob files
// of `state`. Skips tables that were removed meanwhile.
[[nodiscard]] rocksdb::Status ReadNeeds(const std::string& directory,
                                        const ManifestState& state,
                                        Needs* needs);
// Checks that the application's RocksDB release can open files with these
// needs. If the release is unknown, any needs are accepted. The check is
// necessary because the process that receives a clone does not open it.
//   kIncompatible  the release is too old, or no longer reads old tables
[[nodiscard]] rocksdb::Status CheckOpens(const Needs& needs,
                                         const RocksDbRelease& application);

// Restricts a clone to the column families in `wanted` (empty: keeps all
// families). Removes other families from *state, and their tables and blob
// files from *files. Keeps files that belong to no family, because RocksDB may
// need them.
//   kRefused  a wanted family does not exist
[[nodiscard]] rocksdb::Status KeepFamilies(
    const std::vector<std::string>& wanted, ManifestState* state,
    std::vector<CloneFile>* files);
// Note for the operator of a clone that has only some families. It says that
// the clone's WALs have entries of all families.
extern const char kWalsOfAllFamilies[];

// A snapshot whose files are read, instead of its entries. Ownership and
// threads are as described for Snapshot. db() returns null. In families(), only
// the names are set.
class FileSnapshot : public Snapshot {
 public:
  explicit FileSnapshot(std::unique_ptr<PrivateDir> dir)
      : Snapshot(dir->path(), dir->own_path()),
        dir_(std::move(dir)),
        db_(dir_->db()) {}
  // Makes an object for Look(), which reads the files in `database_dir` itself
  // instead of a private directory.
  explicit FileSnapshot(const std::string& database_dir)
      : Snapshot(database_dir, database_dir), db_(database_dir) {}

  // Takes the snapshot. If `pinned` is not null, the files are already in the
  // private directory, and `pinned` describes them. Accepts unknown
  // comparators, merge operators and transactions. Otherwise returns the same
  // errors as Snapshot::Create().
  [[nodiscard]] rocksdb::Status Fill(const SnapshotOptions& options,
                                     const SnapshotFiles* pinned);
  // Reads a snapshot that another process has left in the private directory.
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
  // Reads the files and sets all facts of the snapshot.
  [[nodiscard]] rocksdb::Status Describe(const SnapshotOptions& options);
  [[nodiscard]] rocksdb::Status ListFiles();
  [[nodiscard]] rocksdb::Status ReadManifest(const ManifestTail& manifest,
                                             const ManifestState& kept);
  [[nodiscard]] rocksdb::Status ReadTables(const ManifestState& manifest);
  // Reads the properties of one table. Adds the number of its entries to
  // *entries.
  [[nodiscard]] rocksdb::Status ReadTable(const ManifestFile& known,
                                          CloneFile* file, uint64_t* entries);
  [[nodiscard]] rocksdb::Status ReadWals(const ManifestState& state,
                                         WalContents* wals);
  // Computes the digest of the snapshot's contents. Called last, because it
  // needs the results of the functions above.
  void TellContent(const ManifestState& manifest, const WalContents& wals);

  const std::unique_ptr<PrivateDir> dir_;  // null for Look()
  const std::string db_;                   // directory that has the files
  ClonedFiles files_;
};

}  // namespace sstferry
