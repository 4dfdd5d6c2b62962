// Copies a database directory at one point in time, while another process (the
// owner) may write to it. The copy is the state that RocksDB would recover if
// the owner crashed at that time. Works in rounds; each round continues with
// the results of the previous rounds:
//
//   1. read new records of the MANIFEST (snapshot_manifest.h)
//   2. link each table and blob file in it (snapshot_tables.h)
//   3. find the directory of the WALs (snapshot_wal_place.h); list the WALs,
//      pin them, read their new records (snapshot_wals.h)
//   4. read the MANIFEST again: if it has new records, start another round
//   5. copy the part of the MANIFEST and of the WALs that was read; move the
//      MANIFEST's table and blob files to db/
//   6. wait until OPTIONS describe all families (options/seen_options.h)
//
// For several databases with nearly the same point in time, the steps are
// divided. First, Link() runs rounds of steps 1 to 4 for each database, which
// takes long. Then Confirm() runs such a round for each database again; it only
// reads new records. At last, Take() runs steps 5 and 6 for each.
//
// The copy is of one point in time for this reason: the MANIFEST was the same
// before and after the WALs were read, so it was also the same when the last
// WAL record was found. If the copy has a write, it also has everything that
// the owner recorded in the MANIFEST before this write (a flush, an ingestion,
// a new family). It has no later records.
//
// On a network file system, sizes are always read from the server. A database
// there is refused if a process of another machine has it open (see
// CheckWriterIsHere() in base/database_open.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/options/seen_options.h"
#include "pipeline/snapshot/snapshot.h"
#include "pipeline/snapshot/snapshot_manifest.h"
#include "pipeline/snapshot/snapshot_tables.h"
#include "pipeline/snapshot/snapshot_wals.h"
#include "rocksdb/status.h"

namespace sstferry {

// Fills a private directory with the files of one point in time.
//
// Borrows the options; the options and the directories must outlive it.
// Threads: one.
class SnapshotFiles {
 public:
  // `pinned` and `db` are empty directories on the same file system. It is the
  // source's file system, unless that is read-only.
  SnapshotFiles(const SnapshotOptions& options, std::string pinned,
                std::string db);
  SnapshotFiles(const SnapshotFiles&) = delete;
  SnapshotFiles& operator=(const SnapshotFiles&) = delete;

  // Runs rounds until all files are linked and nothing has changed during the
  // last round. Link(), Confirm() and Take() return the errors of
  // Snapshot::Create().
  [[nodiscard]] rocksdb::Status Link();
  // Runs rounds like Link(). The point in time is that of the last round.
  [[nodiscard]] rocksdb::Status Confirm();
  // Fills db/. Uses the point in time of Confirm(), if Confirm() was called and
  // the WALs of that time can still be copied. Otherwise uses the current time.
  [[nodiscard]] rocksdb::Status Take();
  // Return the bounds of the point in time: it is not before moment_begin() and
  // not after moment_end(). Valid after Confirm() or Take().
  std::chrono::steady_clock::time_point moment_begin() const {
    return moment_begin_;
  }
  std::chrono::steady_clock::time_point moment_end() const {
    return moment_end_;
  }
  // Removes the links that only keep the source's files alive.
  [[nodiscard]] rocksdb::Status ReleasePinned();

  const ManifestState& state() const { return manifest_.state(); }
  // Returns the text of the newest OPTIONS file. Empty: there is no OPTIONS
  // file.
  const std::string& options_text() const { return options_text_; }
  // Returns the name of the newest OPTIONS file, such as "OPTIONS-000012".
  // Empty: there is no OPTIONS file.
  const std::string& options_name() const { return seen_options_.name(); }
  const std::string& database_id() const { return database_id_; }
  const std::vector<CopiedWal>& wals() const { return wals_; }
  uint64_t wal_bytes() const;
  // Returns the directory in which the source keeps its WALs.
  const std::string& wal_directory() const { return wal_directory_; }
  // Closes the source's WALs. REQUIRES: Take() is not called afterwards.
  void CloseWals() { pinned_wals_.reset(); }
  uint64_t linked_files() const { return tables_.linked(); }
  uint64_t live_files() const;
  uint64_t rounds() const { return rounds_; }

 private:
  using Clock = std::chrono::steady_clock;

  // If one of the functions below returns NotFound (a file is missing),
  // Incomplete (there is no WAL) or TryAgain, another round is needed.
  [[nodiscard]] rocksdb::Status Round();
  [[nodiscard]] rocksdb::Status AwaitRound();
  [[nodiscard]] rocksdb::Status FollowManifest(bool* changed);
  [[nodiscard]] rocksdb::Status FindWals();
  [[nodiscard]] rocksdb::Status CheckWals();
  [[nodiscard]] rocksdb::Status CheckRecovery() const;
  [[nodiscard]] rocksdb::Status CheckRoom() const;
  [[nodiscard]] rocksdb::Status Copy();

  void EndLongStep();
  [[nodiscard]] rocksdb::Status CheckStopped() const;
  // Returns OK if another round may run; may sleep before. Otherwise returns
  // the final error.
  [[nodiscard]] rocksdb::Status Again(const rocksdb::Status& why);
  [[nodiscard]] rocksdb::Status Lost(const std::string& what) const;
  [[nodiscard]] rocksdb::Status CopyIdentity();
  [[nodiscard]] rocksdb::Status AwaitOptions();
  std::vector<std::string> FamilyNames() const;

  const SnapshotOptions& options_;
  const std::string pinned_;
  const std::string db_;
  // Start of the time that options.deadline limits: the call of Link(),
  // Confirm() or Take(), or the end of the last long step.
  Clock::time_point start_ = Clock::now();
  int long_steps_ = 0;
  bool has_read_wals_ = false;  // one round has read all WALs
  ManifestTail manifest_;
  PinnedTables tables_;
  // True if FindWals() has found the WAL directory since CURRENT last changed.
  bool knows_wals_ = false;
  std::unique_ptr<PinnedWals> pinned_wals_;  // null until FindWals()
  std::string wal_directory_;
  SeenOptions seen_options_;
  // How the application's recovery treats WALs, if its wal_recovery_mode is
  // kPointInTimeRecovery. Not set for other modes, and for a standby.
  std::optional<PointInTime> point_in_time_;
  // Generation of the MANIFEST whose files are linked (ManifestTail).
  uint64_t generation_ = 0;
  uint64_t rounds_ = 0;
  bool confirmed_ = false;  // Confirm() succeeded; Take() has not run yet
  Clock::time_point moment_begin_{};
  Clock::time_point moment_end_{};
  std::string last_fault_;
  uint32_t same_faults_ = 0;
  std::vector<CopiedWal> wals_;
  std::string options_text_;
  std::string database_id_;
};

}  // namespace sstferry
