// A snapshot whose entries are read: RocksDB opens and flushes the private copy
// of a database.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/snapshot/private_dir.h"
#include "pipeline/snapshot/replay_watch.h"
#include "pipeline/snapshot/snapshot.h"
#include "pipeline/snapshot/snapshot_files.h"
#include "pipeline/snapshot/snapshot_options.h"
#include "pipeline/snapshot/snapshot_replay.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"

namespace sstferry {

// A private copy of a database, open in this process. Ownership and threads are
// as for Snapshot.
class SnapshotCopy : public Snapshot {
 public:
  explicit SnapshotCopy(std::unique_ptr<PrivateDir> dir)
      : dir_(std::move(dir)) {}
  SnapshotCopy(const SnapshotCopy&) = delete;
  SnapshotCopy& operator=(const SnapshotCopy&) = delete;
  ~SnapshotCopy() override;

  // Takes the copy. If `pinned` is not null, uses the files that it describes.
  // REQUIRES: the directory is empty or contains those files. Returns the
  // errors of Snapshot::Create().
  [[nodiscard]] rocksdb::Status Fill(const SnapshotOptions& options,
                                     const SnapshotFiles* pinned);
  // Opens the copy in a directory that another process left behind. Returns the
  // errors of Fill().
  [[nodiscard]] rocksdb::Status Reopen(const SnapshotOptions& options,
                                       const RetainedState& state);

  [[nodiscard]] rocksdb::Status PrepareAdoption() override;
  void Keep(bool keep) override { dir_->Keep(keep); }
  rocksdb::DB* db() const override { return db_.get(); }
  const std::vector<SnapshotFamily>& families() const override {
    return families_;
  }
  uint64_t sequence() const override { return sequence_; }
  const std::string& database_id() const override { return database_id_; }
  const std::string& directory() const override { return dir_->path(); }
  const std::string& own_path() const override { return dir_->own_path(); }
  const std::string& options_text() const override { return options_text_; }
  const std::vector<std::string>& notes() const override { return notes_; }
  bool wal_not_flushed() const override { return read_only_; }
  bool wal_holds_single_deletes() const override {
    return replay_.has_single_deletes;
  }
  bool wal_holds_entries() const override { return replay_.entries > 0; }
  const Counters& counters() const override { return counters_; }

  // Returns the reason for wal_not_flushed(), if that is true.
  const std::string& read_only_reason() const { return read_only_reason_; }

 private:
  [[nodiscard]] rocksdb::Status Plan(const SnapshotOptions& options,
                                     const SnapshotFiles& files,
                                     OpenPlan* plan);
  [[nodiscard]] rocksdb::Status Open(const SnapshotOptions& options,
                                     const ReplayedRecords& expected,
                                     OpenPlan* plan);
  [[nodiscard]] rocksdb::Status OpenReadOnly(const OpenPlan& plan);
  [[nodiscard]] rocksdb::Status OpenAndFlush(const OpenPlan& plan);
  [[nodiscard]] rocksdb::Status Describe(const OpenPlan& plan);
  void UseStoppableEnv(const SnapshotOptions& options, OpenPlan* plan);
  void Close();

  const std::unique_ptr<PrivateDir> dir_;  // must outlive db_
  // Its file system fails after cancellation; must outlive db_.
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<ReplayWatch> watch_;  // must outlive db_
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
  std::vector<SnapshotFamily> families_;
  uint64_t sequence_ = 0;
  std::string database_id_;
  std::string options_text_;
  std::vector<std::string> notes_;
  bool read_only_ = false;
  std::string read_only_reason_;
  Replay replay_;
  Counters counters_;
};

}  // namespace sstferry
