// A snapshot: an open copy of a database at one point in time, in a private
// directory, with all data in SST files. Nothing is written into the source.
// snapshot_files.h describes how the point in time is chosen.
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

// End of the WALs in a snapshot of an earlier moment: the first `bytes` bytes
// (complete records) of the WAL `number` are included.
struct WalLimit {
  uint64_t number = 0;
  uint64_t bytes = 0;
};

struct SnapshotOptions {
  std::string database_dir;
  // Parent of the private directory, on the source's file system unless that is
  // read-only. Empty: the parent directory of database_dir, or a directory for
  // temporary files (SnapshotParent()).
  std::string snapshot_dir;
  std::vector<std::string> families;  // empty: all
  // Total memtable size of all families during the replay and flush of WALs.
  uint64_t write_buffer_bytes = 32u << 20;
  int max_open_files = 64;
  // Maximum of WAL bytes that are replayed into memory if flushing is
  // impossible.
  uint64_t max_read_only_wal_bytes = 64u << 20;
  // Time limit for further rounds if the source changes during each round. Does
  // not include the first read of the WALs, which may take minutes.
  std::chrono::milliseconds deadline{60'000};
  // Time to wait for an OPTIONS file that describes a new family.
  std::chrono::milliseconds options_patience{3'000};
  // WAL directory, which overrides OPTIONS. Empty: found by
  // snapshot_wal_place.h.
  std::string wal_dir;
  // End of the WALs: later records are ignored. The MANIFEST must not contain
  // anything newer than the records before the limit. Not set: includes all
  // records.
  std::optional<WalLimit> wal_limit;
  // Other directories with tables (path 0 of db_paths or cf_paths).
  std::vector<std::string> table_dirs;
  // Reads the files unchanged: nothing is opened, replayed or flushed.
  // `families` then selects tables and blob files; the MANIFEST and the WALs
  // contain all families.
  bool as_files = false;
  // The caller will read only entries of this interval, and calls Fetch()
  // before. Not set: it may read all entries. Only archives use this.
  std::optional<KeyInterval> interval;
  OperatorRegistry registry;
  std::function<bool()> cancelled;  // polled between steps; may be null
  // Counts the bytes that are read from an archive and, if `cancelled` is set,
  // from the copy's tables: a target waits for the plan only while this grows.
  // May be null; must outlive the snapshot.
  std::atomic<uint64_t>* read_bytes = nullptr;
  LogFunction log;                  // may be null
};

class PinnedFiles;
class PrivateDir;
class SnapshotFiles;
class UnitSource;

// Makes the private directory of a snapshot. `options.database_dir` is a real
// path.
[[nodiscard]] rocksdb::Status MakePrivateDir(const SnapshotOptions& options,
                                             std::unique_ptr<PrivateDir>* dir);

// State of a retained snapshot that another process took.
struct RetainedState {
  uint64_t sequence = 0;
  std::string database_id;
  bool read_only = false;  // value of wal_not_flushed()
  uint64_t wal_bytes = 0;  // value of SnapshotCounters::wal_bytes_copied
};

// A column family of an open snapshot.
struct SnapshotFamily {
  std::string name;
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  // Options from the source's OPTIONS file, not those of the private copy.
  rocksdb::ColumnFamilyOptions options;
  // Name of the merge operator in OPTIONS if this process lacks it; reading a
  // key with merge operands then fails. Otherwise empty.
  std::string unknown_merge_operator;
};

// The files of a snapshot that is read as files, sorted by kind and number, and
// their requirements on the RocksDB that will open them. They are in
// own_path()/db, unless units() reads them. If unit_bytes is 0, they can be
// split into units of any size.
struct ClonedFiles : FileSet {
  Needs needs;
  // Number of entries in each family's tables, if the tables' properties have
  // it.
  std::map<std::string, uint64_t> entries;
};

struct SnapshotCounters {
  uint64_t rounds = 0;
  uint64_t wal_files = 0;
  uint64_t wal_bytes_copied = 0;
  // Includes links that the final MANIFEST no longer needs.
  uint64_t files_linked = 0;
  uint64_t live_files = 0;
  uint64_t copy_micros = 0;   // time to link and copy all files
  uint64_t flush_micros = 0;  // time to replay WALs and flush
};

// Facts about a database at a snapshot's point in time.
struct SnapshotFacts {
  std::vector<SnapshotFamily> families;
  uint64_t sequence = 0;
  // The id of the source database; empty if it has no permanent id, neither in
  // an IDENTITY file nor in its MANIFEST.
  std::string database_id;
  // The text of the newest OPTIONS file; empty if there is no such file.
  std::string options_text;
  // Notes for the operator about the point in time, one sentence each.
  std::vector<std::string> notes;
  // The point in time in seconds since 1970; 0: the time at which the snapshot
  // was taken.
  uint64_t point_in_time_seconds = 0;
  // The copy is open read-only, with the WALs' entries in memory instead of SST
  // files.
  bool wal_not_flushed = false;
  // The WALs that recovery replayed hold a SingleDelete.
  bool wal_holds_single_deletes = false;
  // Recovery may have replayed entries.
  bool wal_holds_entries = false;
  SnapshotCounters counters;
};

// A snapshot that transfers read.
//
// Ownership: owns the RocksDB instance, its handles and the private directory;
// the destructor removes all of them. Destroy iterators first.
// Threads:   Create() blocks; afterwards everything is const and safe from any
// thread.
class Snapshot {
 public:
  // Takes a snapshot of a database directory that is closed, a checkpoint, or
  // open in another process; all three are treated alike. Removes snapshots
  // next to the source that processes left behind when they crashed.
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

  // Describes the files of a directory in place; creates and pins nothing.
  // Another process that has the database open may change it at any time; if it
  // does so during the call, the call may fail with the errors of Create().
  // Uses only the options database_dir, as_files (true) and cancelled.
  [[nodiscard]] static rocksdb::Status Look(const SnapshotOptions& options,
                                            std::unique_ptr<Snapshot>* result);

  // Takes a snapshot of a database that this process has open. First flushes
  // the memtables and the WAL's buffer, so that the snapshot includes all
  // earlier writes, also those without WAL. `families` are handles of the
  // families whose comparators and merge operators RocksDB cannot find by name;
  // options.database_dir is not used.
  [[nodiscard]] static rocksdb::Status FromOpenDatabase(
      rocksdb::DB* db,
      const std::vector<rocksdb::ColumnFamilyHandle*>& families,
      const SnapshotOptions& options, std::unique_ptr<Snapshot>* result);

  // Makes a snapshot of files that were pinned and copied earlier;
  // options.database_dir is used only in messages. May be called several times
  // for one PinnedFiles.
  [[nodiscard]] static rocksdb::Status OfPinned(
      const SnapshotOptions& options, const PinnedFiles& pinned,
      std::unique_ptr<Snapshot>* result);

  // Opens a retained snapshot that another process took and left behind with a
  // lease. Does not read the source; options.database_dir is used only in
  // messages.
  //   kSnapshotGone  it cannot be opened, or has another point in time.
  [[nodiscard]] static rocksdb::Status Adopt(
      const SnapshotOptions& options, const RetainedState& state,
      std::unique_ptr<PrivateDir> dir, std::unique_ptr<Snapshot>* result);

  virtual ~Snapshot() = default;

  // Prepares the adoption by another process: writes the files that Adopt()
  // needs and that are still missing in the private directory.
  [[nodiscard]] virtual rocksdb::Status PrepareAdoption() {
    return rocksdb::Status::OK();
  }
  // Makes the directory outlive this object if `keep` is true.
  virtual void Keep(bool /*keep*/) {}

  // Returns the open copy; null if the snapshot is read as files.
  virtual rocksdb::DB* db() const = 0;
  // Fetches the data that db() needs to read a family's entries in an interval,
  // if the data is not on this machine (a snapshot of an archive). `cancelled`
  // is polled.
  //   kDeadPeer               it cannot be fetched at the moment
  //   kCorrupt, kSnapshotGone it is lost: the message says what remains
  //   kNoSpace                there is no room for it
  [[nodiscard]] virtual rocksdb::Status Fetch(
      const std::string& /*family*/, const KeyInterval& /*interval*/,
      const std::function<bool()>& /*cancelled*/) const {
    return rocksdb::Status::OK();
  }
  // Returns the files; null if the snapshot is not read as files.
  virtual const ClonedFiles* files() const { return nullptr; }
  // Reads the bytes of files(); null: they are in own_path()/db.
  virtual UnitSource* units() const { return nullptr; }
  // Returns the directory; empty if the files are not in a directory (an
  // archive).
  const std::string& directory() const { return directory_; }
  // Returns a path that leads to the same directory as long as the snapshot
  // exists, even if the directory is renamed; files are read through this path.
  const std::string& own_path() const { return own_path_; }

  const SnapshotFacts& facts() const { return facts_; }
  // families() and database_id() are virtual only for a test that waits in
  // them: the first is called by a plan, the second by its announcement.
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
  Snapshot() = default;  // without a directory
  Snapshot(std::string directory, std::string own_path)
      : directory_(std::move(directory)), own_path_(std::move(own_path)) {}
  // Returns the facts, to be set while the snapshot is taken.
  SnapshotFacts* mutable_facts() { return &facts_; }

 private:
  const std::string directory_;
  const std::string own_path_;
  SnapshotFacts facts_;
};

}  // namespace sstferry
