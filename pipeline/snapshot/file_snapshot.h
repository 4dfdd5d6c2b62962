// A snapshot whose files are read as they are: no RocksDB opens it, so it needs
// no comparator, no merge operator and no recovery.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pipeline/snapshot/private_dir.h"
#include "pipeline/snapshot/snapshot.h"
#include "pipeline/snapshot/snapshot_manifest.h"
#include "pipeline/snapshot/snapshot_replay.h"

namespace sstferry {

// Keeps of *state, which the MANIFEST tells, and of *files those of the column
// families `wanted` (empty: all). Drops nothing that no family has: RocksDB may
// keep it for a reason.
//   kRefused  one of them is not there
[[nodiscard]] rocksdb::Status KeepFamilies(
    const std::vector<std::string>& wanted, ManifestState* state,
    std::vector<CloneFile>* files);
// Says that the WALs of a clone of some families are of all.
extern const char kWalsOfAllFamilies[];

// Ownership and threads: as Snapshot. db() is null.
class FileSnapshot : public Snapshot {
 public:
  explicit FileSnapshot(std::unique_ptr<PrivateDir> dir)
      : dir_(std::move(dir)), db_(dir_->db()) {}
  // For Look() at the files of `database_dir`.
  explicit FileSnapshot(std::string database_dir)
      : db_(std::move(database_dir)) {}

  // Takes it, unless its files are there already, which `pinned` describes.
  // Errors as Snapshot::Create(), but comparators, operators and transactions
  // are no reason to refuse.
  [[nodiscard]] rocksdb::Status Fill(const SnapshotOptions& options,
                                     const SnapshotFiles* pinned);
  // Finds it in the directory that another process left.
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
  const std::vector<SnapshotFamily>& families() const override {
    return families_;
  }
  uint64_t sequence() const override { return sequence_; }
  const std::string& database_id() const override { return database_id_; }
  const std::string& directory() const override {
    return dir_ != nullptr ? dir_->path() : db_;
  }
  const std::string& own_path() const override {
    return dir_ != nullptr ? dir_->own_path() : db_;
  }
  const std::string& options_text() const override { return options_text_; }
  const std::vector<std::string>& notes() const override { return notes_; }
  bool wal_not_flushed() const override { return false; }
  const Digest128& wal_digest() const override { return wal_digest_; }
  bool wal_holds_entries() const override { return wal_holds_entries_; }
  const Counters& counters() const override { return counters_; }

 private:
  // Everything that the files tell.
  [[nodiscard]] rocksdb::Status Describe(const SnapshotOptions& options);
  [[nodiscard]] rocksdb::Status ListFiles();
  [[nodiscard]] rocksdb::Status ReadManifest(const ManifestTail& manifest,
                                             const ManifestState& kept);
  [[nodiscard]] rocksdb::Status ReadTables(const ManifestState& manifest);
  // Adds to *entries those of the table.
  [[nodiscard]] rocksdb::Status ReadTable(const ManifestFile& known,
                                          CloneFile* file, uint64_t* entries);
  [[nodiscard]] rocksdb::Status ReadWals(const ManifestState& state,
                                         WalContents* wals);
  // After all of these.
  void TellContent(const ManifestState& manifest, const WalContents& wals);

  const std::unique_ptr<PrivateDir> dir_;  // null: only looked at
  const std::string db_;                   // where the files lie
  ClonedFiles files_;
  std::vector<SnapshotFamily> families_;  // names only
  uint64_t sequence_ = 0;
  std::string database_id_;
  std::string options_text_;
  std::vector<std::string> notes_;
  Digest128 wal_digest_;  // not known
  bool wal_holds_entries_ = false;
  Counters counters_;
};

}  // namespace sstferry
