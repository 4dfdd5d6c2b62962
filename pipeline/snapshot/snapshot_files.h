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

  // Fills db/. Errors as Snapshot::Create().
  [[nodiscard]] rocksdb::Status Take();
  // Removes the links that only kept files alive.
  [[nodiscard]] rocksdb::Status ReleasePinned();

  const ManifestState& state() const { return manifest_.state(); }
  // Text of the newest OPTIONS; empty if there is no OPTIONS file.
  const std::string& options_text() const { return options_text_; }
  // Path db/OPTIONS-...; empty if there is none.
  const std::string& database_id() const { return database_id_; }
  const std::vector<CopiedWal>& wals() const { return wals_; }
  uint64_t wal_bytes() const;
  // Where the source keeps its WALs.
  std::string wal_directory() const {
    return pinned_wals_ == nullptr ? "" : pinned_wals_->directory();
  }
  uint64_t linked_files() const { return tables_.linked(); }
  uint64_t live_files() const;
  uint64_t rounds() const { return rounds_; }

 private:
  using Clock = std::chrono::steady_clock;

  // All functions below: NotFound (a file is not there) and TryAgain require
  // another round.
  [[nodiscard]] rocksdb::Status Round();
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
  const Clock::time_point start_ = Clock::now();
  ManifestTail manifest_;
  PinnedTables tables_;
  std::unique_ptr<PinnedWals>
      pinned_wals_;  // null until their directory is known
  SeenOptions seen_options_;
  uint64_t generation_ = 0;  // of the MANIFEST that names the linked files
  uint64_t rounds_ = 0;
  std::string last_fault_;
  uint32_t same_faults_ = 0;
  std::vector<CopiedWal> wals_;
  std::string options_text_;
  std::string database_id_;
};

}  // namespace sstferry
