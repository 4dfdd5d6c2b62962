// Takes, opens and flushes the private copy of a database.
#pragma once

#include <memory>
#include <string>
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

// A private copy of a database, open in this process.
//
// Ownership: owns the database and its handles; borrows the directory, which
//            must outlive it.
class SnapshotCopy {
 public:
  SnapshotCopy() = default;
  SnapshotCopy(const SnapshotCopy&) = delete;
  SnapshotCopy& operator=(const SnapshotCopy&) = delete;
  ~SnapshotCopy();

  // Takes the copy. If `pinned` is not null, uses the files that it describes,
  // which are already in `dir`. REQUIRES: `dir` is empty or contains those
  // files. Returns the errors of Snapshot::Create().
  [[nodiscard]] rocksdb::Status Take(const SnapshotOptions& options,
                                     const PrivateDir& dir,
                                     const SnapshotFiles* pinned);

  // Opens the copy that another process took in `dir`. Returns the errors of
  // Take().
  [[nodiscard]] rocksdb::Status Reopen(const SnapshotOptions& options,
                                       const RetainedState& state,
                                       const PrivateDir& dir);

  // Writes the files that Reopen() needs and that are still missing in `dir`.
  [[nodiscard]] rocksdb::Status PrepareReopening(const PrivateDir& dir) const;

  rocksdb::DB* db() const { return db_.get(); }
  const std::vector<SnapshotFamily>& families() const { return families_; }
  uint64_t sequence() const { return sequence_; }
  const std::string& database_id() const { return database_id_; }
  const std::string& options_text() const { return options_text_; }
  const std::vector<std::string>& notes() const { return notes_; }
  bool read_only() const { return read_only_; }
  const Replay& replay() const { return replay_; }
  const Snapshot::Counters& counters() const { return counters_; }

 private:
  [[nodiscard]] rocksdb::Status Plan(const SnapshotOptions& options,
                                     const PrivateDir& dir,
                                     const SnapshotFiles& files,
                                     OpenPlan* plan);
  [[nodiscard]] rocksdb::Status Open(const SnapshotOptions& options,
                                     const std::string& directory,
                                     const ReplayedRecords& expected,
                                     OpenPlan* plan);
  [[nodiscard]] rocksdb::Status OpenReadOnly(const std::string& directory,
                                             const OpenPlan& plan);
  [[nodiscard]] rocksdb::Status OpenAndFlush(const std::string& directory,
                                             const OpenPlan& plan);
  [[nodiscard]] rocksdb::Status Describe(const OpenPlan& plan);
  void UseStoppableEnv(const SnapshotOptions& options, OpenPlan* plan);
  void Close();

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
  Replay replay_;
  Snapshot::Counters counters_;
};

}  // namespace sstferry
