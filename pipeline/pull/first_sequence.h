// Prevents that a database has entries while its last sequence number is 0.
//
// Ingestion may leave every entry, and RocksDB's last sequence number, at 0. A
// snapshot that is taken then has sequence 0, and while such a snapshot exists,
// RocksDB before 9.10 drops the entries at 0 in each compaction
// (facebook/rocksdb#13155): all readers lose them. When the last sequence is 1
// or more, no later snapshot has sequence 0.
//
//   closed directory    RaiseLastSequence() appends to the MANIFEST
//   open database       SpendFirstSequence() makes RocksDB assign a number to
//                       an empty range deletion. The effect ends when the
//                       database is closed, unless its MANIFEST has changed
//                       since: an ingest changes it
//   application's one   LeaveSequenceZero() deletes a key that nobody has,
//                       which has a lasting effect
//
// The last sequence proves nothing about the contents of a database, and
// nothing in this project relies on it for that.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// Sets *at_zero if the database in `dir` has tables, its MANIFEST records last
// sequence 0, and its WALs have no entry. Only reads files; the database may be
// open.
[[nodiscard]] rocksdb::Status StandsAtZero(rocksdb::FileSystem* file_system,
                                           const std::string& dir,
                                           bool* at_zero);

// Raises RocksDB's last sequence to at least `at_least`, and at least 1, by an
// edit at the end of the MANIFEST. The MANIFEST is replaced as a whole: after a
// crash it is the old or the new one. Changes nothing if the last sequence is
// high enough. REQUIRES: no process has the database in `dir` open.
//   kCorrupt   the MANIFEST is damaged
//   kInternal  the MANIFEST does not end with a whole record
[[nodiscard]] rocksdb::Status RaiseLastSequence(
    rocksdb::FileSystem* file_system, const std::string& dir,
    uint64_t at_least);

// Makes RocksDB's last sequence 1 if it is 0 and one of these families has a
// table. Writes a range deletion from a key to the same key, which RocksDB logs
// and counts but applies to nothing, even when it replays the WAL. Sets *spent
// if it wrote one. Threads: any; the application may read, write and compact
// meanwhile.
//   kRefused  RocksDB accepts no range deletions in any of the families
[[nodiscard]] rocksdb::Status SpendFirstSequence(
    rocksdb::DB* db,
    const std::vector<rocksdb::ColumnFamilyHandle*>& families, bool* spent);

// Does the same permanently: deletes a random key of a family whose comparator
// is RocksDB's own. Without such a family it calls SpendFirstSequence(),
// because an application's comparator need not accept a key that the
// application did not make.
[[nodiscard]] rocksdb::Status LeaveSequenceZero(
    rocksdb::DB* db,
    const std::vector<rocksdb::ColumnFamilyHandle*>& families, bool* left);

}  // namespace sstferry
