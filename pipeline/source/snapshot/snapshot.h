// One point in time of a database, opened, complete in SST files, in a private
// directory. The source is never written to. See snapshot_files.h for how the
// point in time is taken.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "format/digest.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "sstferry/options.h"

namespace sstferry {

struct SnapshotOptions {
  std::string database_dir;
  // Where the private directory is made; must be on the source's file system.
  // Empty: the directory that holds database_dir.
  std::string snapshot_dir;
  std::vector<std::string> families;  // empty: all
  // Memtables of all families together while WALs are replayed and flushed.
  uint64_t write_buffer_bytes = 32u << 20;
  int max_open_files = 64;
  // WAL bytes that may be replayed into memory where flushing is impossible.
  uint64_t max_read_only_wal_bytes = 64u << 20;
  // Another round is made when the source changed under one, for so long.
  std::chrono::milliseconds patience{60'000};
  // How long to wait for OPTIONS that describe a new family.
  std::chrono::milliseconds options_patience{3'000};
  // Where its WALs are, whatever OPTIONS say; empty: as snapshot_wal_place.h
  // finds out.
  std::string wal_dir;
  // Further directories of its tables (path 0 of db_paths or cf_paths).
  std::vector<std::string> table_dirs;
  // Memtables were flushed just before.
  bool was_flushed = false;
  OperatorRegistry registry;
  std::function<bool()> cancelled;  // polled between steps; may be null
  // Counts what is read of the copy's tables where `cancelled` is set; may be
  // null, must outlive the snapshot.
  std::atomic<uint64_t>* read_bytes = nullptr;
  LogFunction log;                  // may be null
};

class PrivateDir;

// What is known of a snapshot that another process took.
struct HeldSnapshotState {
  uint64_t sequence = 0;
  std::string database_id;
  bool read_only = false;  // as wal_not_flushed()
  uint64_t wal_bytes = 0;  // as Counters::wal_bytes_copied
};

struct SnapshotFamily {
  std::string name;
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  // As the source's OPTIONS file tells, not those of the private copy.
  rocksdb::ColumnFamilyOptions options;
  // The merge operator OPTIONS names when nobody here has it: reading a key
  // with merge operands then fails. Empty otherwise.
  std::string unknown_merge_operator;
};

// Ownership: owns the RocksDB instance, its handles and the private directory;
//   all are gone after the destructor. Iterators must be gone before.
// Threads:   Create() blocks; afterwards everything is const and safe from any
//   thread.
class Snapshot {
 public:
  struct Counters {
    uint64_t rounds = 0;
    uint64_t wal_files = 0;
    uint64_t wal_bytes_copied = 0;
    uint64_t files_linked = 0;  // before the last MANIFEST chose among them
    uint64_t live_files = 0;
    uint64_t copy_micros = 0;   // until all is linked and copied
    uint64_t flush_micros = 0;  // replay and flush
  };

  // Of a directory: closed, a checkpoint, or open in another process; nothing
  // tries to find out which. What dead processes left beside it is removed.
  //   kSourceError  not a database; a file is missing or cannot be read,
  //                 linked or opened; the source changed in every round.
  //   kCorrupt      bytes are wrong: the message names the file.
  //   kRefused      cannot be read faithfully (comparator, timestamps, files
  //                 elsewhere, WALs of WRITE_PREPARED): the message says why.
  //   kIncompatible the WALs hold records that this RocksDB does not know.
  //   kNoSpace      the private directory's disk is full.
  //   kCancelled    cancelled() said so.
  [[nodiscard]] static rocksdb::Status Create(
      const SnapshotOptions& options, std::unique_ptr<Snapshot>* result);

  // Of a database this process has open: memtables and the WAL's buffer are
  // flushed first, so what was written before the call, without WAL, too, is
  // in it. `families` are handles of the families whose comparators and merge
  // operators RocksDB does not know by name; options.database_dir is not used.
  [[nodiscard]] static rocksdb::Status FromOpenDatabase(
      rocksdb::DB* db,
      const std::vector<rocksdb::ColumnFamilyHandle*>& families,
      const SnapshotOptions& options, std::unique_ptr<Snapshot>* result);

  // Opens again what another process took and left with a lease. Nothing of
  // the source itself is looked at; options.database_dir only names it.
  //   kSnapshotGone  it cannot be opened, or holds another point in time.
  [[nodiscard]] static rocksdb::Status Adopt(
      const SnapshotOptions& options, const HeldSnapshotState& state,
      std::unique_ptr<PrivateDir> dir, std::unique_ptr<Snapshot>* result);

  virtual ~Snapshot() = default;

  // Makes it possible to adopt it: what Adopt() needs and is not in the
  // private directory yet is written there.
  [[nodiscard]] virtual rocksdb::Status PrepareAdoption() {
    return rocksdb::Status::OK();
  }
  // Whether the directory outlives this object.
  virtual void Keep(bool /*keep*/) {}

  virtual rocksdb::DB* db() const = 0;
  virtual const std::vector<SnapshotFamily>& families() const = 0;
  virtual uint64_t sequence() const = 0;
  // Empty when the source has none that lasts: no IDENTITY file, and no id in
  // its MANIFEST.
  virtual const std::string& database_id() const = 0;
  virtual const std::string& directory() const = 0;
  // The newest OPTIONS file as it stands; empty when there is none.
  virtual const std::string& options_text() const = 0;
  // What an operator should know about the cut, one sentence each.
  virtual const std::vector<std::string>& notes() const = 0;
  // Opened read-only: entries of the WALs are in memory, not in SST files.
  virtual bool wal_not_flushed() const = 0;
  // Of all that recovery replayed: two snapshots of one database with the same
  // digest got the same entries from their WALs. All zero: not known.
  virtual const Digest128& wal_digest() const = 0;
  // Whether recovery may have replayed any entry.
  virtual bool wal_holds_entries() const = 0;
  virtual const Counters& counters() const = 0;
};

}  // namespace sstferry
