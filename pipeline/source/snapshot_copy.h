// One attempt at a private copy: files pinned, listed, placed, opened, flushed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pipeline/source/private_dir.h"
#include "pipeline/source/snapshot.h"
#include "pipeline/source/snapshot_files.h"
#include "pipeline/source/snapshot_options.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"

namespace sstferry {

// Ownership: owns the database and its handles; borrows the directory, which
//   must outlive it.
class SnapshotCopy {
 public:
  SnapshotCopy() = default;
  SnapshotCopy(const SnapshotCopy&) = delete;
  SnapshotCopy& operator=(const SnapshotCopy&) = delete;
  ~SnapshotCopy();

  // `dir` is clear. OK with attempt->again: the source changed, nothing is
  // open, try anew. Errors as Snapshot::Create().
  [[nodiscard]] rocksdb::Status Take(const SnapshotOptions& options,
                                     const PrivateDir& dir, Attempt* attempt);

  // `dir` holds what Take() of another process left. Errors as Take().
  [[nodiscard]] rocksdb::Status Reopen(const SnapshotOptions& options,
                                       const HeldSnapshotState& state,
                                       const PrivateDir& dir);

  // The error for a fault that does not go away.
  [[nodiscard]] rocksdb::Status PermanentFault(const SnapshotOptions& options,
                                               const Attempt& attempt) const;

  rocksdb::DB* db() const { return db_.get(); }
  const std::vector<SnapshotFamily>& families() const { return families_; }
  uint64_t sequence() const { return sequence_; }
  const std::string& database_id() const { return database_id_; }
  const std::string& options_text() const { return options_text_; }
  const std::vector<std::string>& notes() const { return notes_; }
  bool read_only() const { return read_only_; }
  const Snapshot::Counters& counters() const { return counters_; }

 private:
  [[nodiscard]] rocksdb::Status TakeFiles(const SnapshotOptions& options,
                                          const PrivateDir& dir,
                                          SnapshotFiles* files, OpenPlan* plan,
                                          Attempt* attempt);
  [[nodiscard]] rocksdb::Status ListLiveFiles(const std::string& directory,
                                              bool has_identity,
                                              OpenPlan* plan,
                                              std::vector<LiveFile>* files);
  [[nodiscard]] rocksdb::Status OpenReadOnly(const std::string& directory,
                                             const OpenPlan& plan);
  [[nodiscard]] rocksdb::Status OpenAndFlush(const std::string& directory,
                                             const OpenPlan& plan);
  [[nodiscard]] rocksdb::Status Describe(const SnapshotOptions& options,
                                         const OpenPlan& plan);
  void UseStoppableEnv(const SnapshotOptions& options, OpenPlan* plan);
  void Close();

  // Fails once the snapshot is cancelled; outlives db_.
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
  std::vector<SnapshotFamily> families_;
  uint64_t sequence_ = 0;
  std::string database_id_;
  std::string options_text_;
  std::vector<std::string> notes_;
  bool read_only_ = false;
  bool nothing_found_ = false;
  Snapshot::Counters counters_;
};

}  // namespace sstferry
