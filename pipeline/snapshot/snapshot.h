// A snapshot: a copy of a database at one point in time, in a private
// directory. sstferry writes nothing into the source. Usually RocksDB opens the
// copy and flushes its WALs, so that all data is in SST files. snapshot_files.h
// describes how the point in time is chosen.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/clone_file.h"
#include "format/digest.h"
#include "format/release.h"
#include "format/types.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "sstferry/options.h"

namespace sstferry {

// Excludes the latest WAL records from a snapshot. Only the first `bytes` bytes
// of the WAL `number` are included, which end with a complete record. Later
// WALs are not included.
struct WalLimit {
  uint64_t number = 0;
  uint64_t bytes = 0;
};

struct SnapshotOptions {
  std::string database_dir;
  // Directory in which the private directory is made. It must be on the
  // source's file system, unless that is read-only. Empty: the parent directory
  // of database_dir, or a directory for temporary files (see SnapshotParent()).
  std::string snapshot_dir;
  std::vector<std::string> families;  // empty: all
  // Total size of all memtables while WALs are replayed and flushed.
  uint64_t write_buffer_bytes = 32u << 20;
  int max_open_files = 64;
  // If the WALs cannot be flushed, their entries stay in memory. This is then
  // the maximum size of the WALs.
  uint64_t max_read_only_wal_bytes = 64u << 20;
  // Time limit if the source changes during each round, so that another round
  // is needed. Excludes the first read of the WALs, which may take minutes.
  std::chrono::milliseconds deadline{60'000};
  // Time to wait until an OPTIONS file describes a new column family.
  std::chrono::milliseconds options_patience{3'000};
  // WAL directory, which overrides OPTIONS. Empty: snapshot_wal_place.h finds
  // the directory.
  std::string wal_dir;
  // Where to end the WALs. Records after this limit are ignored. The MANIFEST
  // must not contain anything that is newer than the records before the limit.
  // Not set: all records are included.
  std::optional<WalLimit> wal_limit;
  // Other directories to search for tables (path 0 of db_paths or cf_paths).
  std::vector<std::string> table_dirs;
  // Takes a snapshot for a clone: the files are read unchanged, and RocksDB
  // neither opens nor flushes them. `families` then selects tables and blob
  // files. The MANIFEST and the WALs still have all families.
  bool as_files = false;
  // Keys that the caller will read, after a call of Fetch(). Not set: the
  // caller may read all keys. Used only for archives.
  std::optional<KeyInterval> interval;
  OperatorRegistry registry;
  // Returns true to end the call. Called between steps. May be null.
  std::function<bool()> cancelled;
  // Counts bytes that are read from an archive and, if `cancelled` is set, from
  // the copy's tables. A target waits for a plan only while this number grows.
  // May be null. Must exist as long as the snapshot.
  std::atomic<uint64_t>* read_bytes = nullptr;
  LogFunction log;  // may be null
};

class PinnedFiles;
class PrivateDir;
class SnapshotFiles;
class UnitSource;

// Makes the private directory of a snapshot. options.database_dir must be a
// path without symbolic links.
[[nodiscard]] rocksdb::Status MakePrivateDir(const SnapshotOptions& options,
                                             std::unique_ptr<PrivateDir>* dir);

// Facts about a retained snapshot that another process has taken.
struct RetainedState {
  uint64_t sequence = 0;
  std::string database_id;
  bool read_only = false;  // see wal_not_flushed()
  uint64_t wal_bytes = 0;  // see SnapshotCounters::wal_bytes_copied
};

// A column family of an open snapshot.
struct SnapshotFamily {
  std::string name;
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  // Options in the source's OPTIONS file. The private copy is opened with other
  // options.
  rocksdb::ColumnFamilyOptions options;
  // Name of the merge operator in OPTIONS, if this process does not have the
  // operator. Keys with merge operands can then not be read. Otherwise empty.
  std::string unknown_merge_operator;
};

// The files of a snapshot for a clone, sorted by kind and number, and what they
// require of the RocksDB that will open them. The files are in own_path()/db,
// unless units() reads them. If unit_bytes is 0, a file can be split into units
// of any size.
struct ClonedFiles : FileSet {
  Needs needs;
  // Number of entries in the tables of each column family, if the tables'
  // properties have this number.
  std::map<std::string, uint64_t> entries;
};

struct SnapshotCounters {
  uint64_t rounds = 0;
  uint64_t wal_files = 0;
  uint64_t wal_bytes_copied = 0;
  // Number of files that were linked in any round (snapshot_files.h). Includes
  // files that the final MANIFEST does not name any more.
  uint64_t files_linked = 0;
  uint64_t live_files = 0;
  uint64_t copy_micros = 0;   // time to link and copy all files
  uint64_t flush_micros = 0;  // time to replay WALs and flush
};

// Facts about a database at a snapshot's point in time.
struct SnapshotFacts {
  std::vector<SnapshotFamily> families;
  uint64_t sequence = 0;
  // Id of the source database. Empty if neither an IDENTITY file nor the
  // MANIFEST has an id.
  std::string database_id;
  // Text of the newest OPTIONS file. Empty: there is no OPTIONS file.
  std::string options_text;
  // Notes for the operator about the point in time, one sentence each.
  std::vector<std::string> notes;
  // Point in time of the data, in seconds since 1970. 0: it is the time at
  // which the snapshot was taken.
  uint64_t point_in_time_seconds = 0;
  // True if the copy is open read-only. The entries of its WALs are then in
  // memory instead of SST files.
  bool wal_not_flushed = false;
  // True if the WALs that the recovery has replayed contain a SingleDelete.
  bool wal_holds_single_deletes = false;
  // True if the recovery may have replayed entries.
  bool wal_holds_entries = false;
  SnapshotCounters counters;
};

// A snapshot of a database, which transfers read.
//
// Ownership: owns the RocksDB instance, its handles and the private directory.
// The destructor removes all of them. The caller must destroy iterators first.
// Threads:   Create() blocks. Afterwards the object does not change and may be
// used by any thread.
class Snapshot {
 public:
  // Takes a snapshot of the directory of a database or of a RocksDB checkpoint.
  // Another process may have the database open. First removes snapshots next to
  // the source that crashed processes have left behind.
  //   kSourceError  not a database; a file is missing or cannot be read, linked
  //                 or opened; the source changed during every round.
  //   kCorrupt      bytes are wrong: the message names the file.
  //   kRefused      cannot be read correctly (comparator, timestamps, files
  //                 elsewhere, WALs of WRITE_PREPARED): the message says why.
  //   kIncompatible a newer RocksDB wrote it in a format that this RocksDB
  //                 cannot read.
  //   kNoSpace      the private directory's file system is full.
  //   kCancelled    cancelled() returned true.
  [[nodiscard]] static rocksdb::Status Create(
      const SnapshotOptions& options, std::unique_ptr<Snapshot>* result);

  // Describes the files in a database directory, without a private directory
  // and without keeping the files alive. If another process changes the
  // database during the call, the call may fail with the errors of Create().
  // Uses only the options database_dir, as_files (which must be true) and
  // cancelled.
  [[nodiscard]] static rocksdb::Status Look(const SnapshotOptions& options,
                                            std::unique_ptr<Snapshot>* result);

  // Takes a snapshot of a database that this process has open. First flushes
  // the memtables and the WAL's buffer. So the snapshot includes all earlier
  // writes, even those without a WAL. `families` are handles of the column
  // families whose comparators and merge operators RocksDB cannot find by name.
  // Does not use options.database_dir.
  [[nodiscard]] static rocksdb::Status FromOpenDatabase(
      rocksdb::DB* db,
      const std::vector<rocksdb::ColumnFamilyHandle*>& families,
      const SnapshotOptions& options, std::unique_ptr<Snapshot>* result);

  // Makes a snapshot of files that `pinned` has already linked and copied. May
  // be called several times with the same `pinned`. Uses options.database_dir
  // only in messages.
  [[nodiscard]] static rocksdb::Status OfPinned(
      const SnapshotOptions& options, const PinnedFiles& pinned,
      std::unique_ptr<Snapshot>* result);

  // Opens a retained snapshot that another process has left behind with a
  // lease. Does not read the source, and uses options.database_dir only in
  // messages.
  //   kSnapshotGone  it cannot be opened, or has another point in time.
  [[nodiscard]] static rocksdb::Status Adopt(
      const SnapshotOptions& options, const RetainedState& state,
      std::unique_ptr<PrivateDir> dir, std::unique_ptr<Snapshot>* result);

  virtual ~Snapshot() = default;

  // Prepares the snapshot for Adopt() by another process. Writes those files
  // into the private directory that Adopt() needs and that are not there yet.
  [[nodiscard]] virtual rocksdb::Status PrepareAdoption() {
    return rocksdb::Status::OK();
  }
  // If `keep` is true, the destructor does not remove the private directory.
  virtual void Keep(bool /*keep*/) {}

  // Returns the copy that RocksDB has open. Returns null for a snapshot with
  // as_files.
  virtual rocksdb::DB* db() const = 0;
  // Makes the entries of a column family in an interval available to db(). Only
  // a snapshot of an archive has to fetch data for this. `cancelled` is called
  // from time to time, and ends the call if it returns true.
  //   kDeadPeer               it cannot be fetched at the moment
  //   kCorrupt, kSnapshotGone it is lost: the message says what remains
  //   kNoSpace                there is no room for it
  [[nodiscard]] virtual rocksdb::Status Fetch(
      const std::string& /*family*/, const KeyInterval& /*interval*/,
      const std::function<bool()>& /*cancelled*/) const {
    return rocksdb::Status::OK();
  }
  // Returns the snapshot's files. Returns null for a snapshot without as_files.
  virtual const ClonedFiles* files() const { return nullptr; }
  // Returns an object that reads the bytes of files(). Null: the files are in
  // own_path()/db.
  virtual UnitSource* units() const { return nullptr; }
  // Returns the directory of the snapshot's files: the private directory, or
  // for Look() the database's own directory. Returns an empty string for an
  // archive.
  const std::string& directory() const { return directory_; }
  // Returns a path that leads to directory() while the snapshot exists, even if
  // the directory is renamed. Files are read through this path.
  const std::string& own_path() const { return own_path_; }

  const SnapshotFacts& facts() const { return facts_; }
  // families() and database_id() are virtual only for one test, which blocks in
  // them. A plan calls families(), and the plan's announcement calls
  // database_id().
  virtual const std::vector<SnapshotFamily>& families() const {
    return facts_.families;
  }
  virtual const std::string& database_id() const { return facts_.database_id; }
  uint64_t sequence() const { return facts_.sequence; }
  const std::string& options_text() const { return facts_.options_text; }
  const std::vector<std::string>& notes() const { return facts_.notes; }
  uint64_t point_in_time_seconds() const {
    return facts_.point_in_time_seconds;
  }
  bool wal_not_flushed() const { return facts_.wal_not_flushed; }
  bool wal_holds_single_deletes() const {
    return facts_.wal_holds_single_deletes;
  }
  bool wal_holds_entries() const { return facts_.wal_holds_entries; }
  const SnapshotCounters& counters() const { return facts_.counters; }

 protected:
  // For a snapshot that has no directory.
  Snapshot() = default;
  Snapshot(std::string directory, std::string own_path)
      : directory_(std::move(directory)), own_path_(std::move(own_path)) {}
  // Returns the facts, so that a derived class can set them while it takes the
  // snapshot.
  SnapshotFacts* mutable_facts() { return &facts_; }

 private:
  const std::string directory_;
  const std::string own_path_;
  SnapshotFacts facts_;
};

}  // namespace sstferry
