// A snapshot whose entries are read. RocksDB opens a private copy of the
// database and flushes its WALs.
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
      : Snapshot(dir->path(), dir->own_path()), dir_(std::move(dir)) {}
  SnapshotCopy(const SnapshotCopy&) = delete;
  SnapshotCopy& operator=(const SnapshotCopy&) = delete;
  ~SnapshotCopy() override;

  // Takes the copy. If `pinned` is not null, uses the files that `pinned`
  // describes. Returns the errors of Snapshot::Create(). REQUIRES: the private
  // directory is empty, or contains the files of `pinned`.
  [[nodiscard]] rocksdb::Status Fill(const SnapshotOptions& options,
                                     const SnapshotFiles* pinned);
  // Opens a copy that another process has left in the private directory.
  // Returns the errors of Fill().
  [[nodiscard]] rocksdb::Status Reopen(const SnapshotOptions& options,
                                       const RetainedState& state);

  [[nodiscard]] rocksdb::Status PrepareAdoption() override;
  void Keep(bool keep) override { dir_->Keep(keep); }
  rocksdb::DB* db() const override { return db_.get(); }

  // If wal_not_flushed() is true, returns the reason.
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
  // Reads and writes through this Env fail after a cancellation. Must outlive
  // db_.
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<ReplayWatch> watch_;  // must outlive db_
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
  std::string read_only_reason_;
  Replay replay_;
};

}  // namespace sstferry
