// Takes one point in time of a database directory that another process may be
// writing to, without writing to it: the state that RocksDB would recover if
// the owner died at that moment. Works in rounds, each of which continues with
// the results of the previous ones:
//
//   1. read what is new in the MANIFEST (snapshot_manifest.h)
//   2. link each table and blob file that it names (snapshot_tables.h)
//   3. list the WALs, pin them, read what is new in them (snapshot_wals.h)
//   4. read the MANIFEST again: anything new means another round
//   5. copy the MANIFEST as it was read, and the WALs up to where they were
//      read; move the files that the MANIFEST names to db/
//   6. wait until OPTIONS describe all families (snapshot_seen_options.h)
//
// Link() and Confirm() make these rounds without 5 and 6, for several databases
// that are to be at nearly one moment: first each is linked, which takes long,
// then each is confirmed by a round that reads only what is new since, then
// Take() copies each.
//
// Why that is one point in time: the MANIFEST was the same before and after the
// WALs were read, so also at the moment their last record was found. Everything
// that the owner recorded in it (a flush, an ingestion, a new family) before a
// write that is in the copy is in the copy too; later records are not.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/snapshot/snapshot.h"
#include "pipeline/snapshot/snapshot_manifest.h"
#include "pipeline/snapshot/snapshot_seen_options.h"
#include "pipeline/snapshot/snapshot_tables.h"
#include "pipeline/snapshot/snapshot_wals.h"
#include "rocksdb/status.h"

namespace sstferry {

// Fills a private directory with the files of one point in time.
//
// Threads: one. Borrows the options; the options and the directories must
// outlive it.
class SnapshotFiles {
 public:
  // `held` and `db` are empty directories on one file system: the source's,
  // unless that is read-only.
  SnapshotFiles(const SnapshotOptions& options, std::string pinned,
                std::string db);
  SnapshotFiles(const SnapshotFiles&) = delete;
  SnapshotFiles& operator=(const SnapshotFiles&) = delete;

  // Makes rounds until one finds everything linked and nothing changed. Errors
  // of all three as Snapshot::Create().
  [[nodiscard]] rocksdb::Status Link();
  // The same; the point in time is that of its last round.
  [[nodiscard]] rocksdb::Status Confirm();
  // Fills db/, as of Confirm() if that came before and what it found can still
  // be copied; else as of now.
  [[nodiscard]] rocksdb::Status Take();
  // The point in time lies between these, once it is confirmed or taken.
  std::chrono::steady_clock::time_point moment_begin() const {
    return moment_begin_;
  }
  std::chrono::steady_clock::time_point moment_end() const {
    return moment_end_;
  }
  // Removes the links that only kept files alive.
  [[nodiscard]] rocksdb::Status ReleasePinned();

  const ManifestState& state() const { return manifest_.state(); }
  // Text of the newest OPTIONS; empty if there is no OPTIONS file.
  const std::string& options_text() const { return options_text_; }
  // Name of that file, "OPTIONS-000012"; empty if there is none.
  const std::string& options_name() const { return seen_options_.name(); }
  const std::string& database_id() const { return database_id_; }
  const std::vector<CopiedWal>& wals() const { return wals_; }
  uint64_t wal_bytes() const;
  // Where the source keeps its WALs.
  const std::string& wal_directory() const { return wal_directory_; }
  // Closes the source's WALs. REQUIRES: nothing is taken any more.
  void CloseWals() { pinned_wals_.reset(); }
  uint64_t linked_files() const { return tables_.linked(); }
  uint64_t live_files() const;
  uint64_t rounds() const { return rounds_; }

 private:
  using Clock = std::chrono::steady_clock;

  // All functions below: NotFound (a file is not there) and TryAgain require
  // another round.
  [[nodiscard]] rocksdb::Status Round();
  [[nodiscard]] rocksdb::Status AwaitRound();
  [[nodiscard]] rocksdb::Status FollowManifest(bool* changed);
  [[nodiscard]] rocksdb::Status FindWals();
  [[nodiscard]] rocksdb::Status CheckRoom() const;
  [[nodiscard]] rocksdb::Status Copy();

  [[nodiscard]] rocksdb::Status CheckStopped() const;
  // OK: make another round; pauses first if needed. Otherwise the final error.
  [[nodiscard]] rocksdb::Status Again(const rocksdb::Status& why);
  [[nodiscard]] rocksdb::Status Lost(const std::string& what) const;
  [[nodiscard]] rocksdb::Status CopyIdentity();
  [[nodiscard]] rocksdb::Status AwaitOptions();
  std::vector<std::string> FamilyNames() const;

  const SnapshotOptions& options_;
  const std::string pinned_;
  const std::string db_;
  Clock::time_point start_ = Clock::now();  // of Link(), Confirm() or Take()
  ManifestTail manifest_;
  PinnedTables tables_;
  std::unique_ptr<PinnedWals>
      pinned_wals_;  // null until their directory is known
  std::string wal_directory_;
  SeenOptions seen_options_;
  uint64_t generation_ = 0;  // of the MANIFEST that names the linked files
  uint64_t rounds_ = 0;
  bool confirmed_ = false;  // by a round whose results were not copied yet
  Clock::time_point moment_begin_{};
  Clock::time_point moment_end_{};
  std::string last_fault_;
  uint32_t same_faults_ = 0;
  std::vector<CopiedWal> wals_;
  std::string options_text_;
  std::string database_id_;
};

}  // namespace sstferry
