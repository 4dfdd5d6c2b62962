// Ensures that a database with entries has a last sequence number above 0.
//
// After an ingest, every entry may have sequence number 0, and RocksDB's last
// sequence may be 0, too. A snapshot that is taken then has sequence 0. While
// such a snapshot exists, RocksDB before 9.10 drops the entries at sequence 0
// in each compaction (facebook/rocksdb#13155), so all readers lose them. When
// the last sequence is 1 or more, no new snapshot has sequence 0.
//
//   closed directory    RaiseLastSequence() appends to the MANIFEST
//   open database       SpendFirstSequence() makes RocksDB assign a number to
//                       an empty range deletion. The effect ends when the
//                       database is closed, unless its MANIFEST has changed
//                       since, for example by an ingest
//   application's db    LeaveSequenceZero() deletes a random key that does not
//                       exist, which has a lasting effect
//
// The last sequence proves nothing about the contents of a database, and no
// code in this project treats it as a proof.
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

// Raises RocksDB's last sequence to `at_least`, or to 1 if `at_least` is 0.
// Adds an edit to the end of the MANIFEST, and replaces the MANIFEST
// atomically. Changes nothing if the last sequence is high enough. REQUIRES: no
// process has the database in `dir` open.
//   kCorrupt   the MANIFEST is damaged
//   kInternal  the MANIFEST does not end with a complete record
[[nodiscard]] rocksdb::Status RaiseLastSequence(
    rocksdb::FileSystem* file_system, const std::string& dir,
    uint64_t at_least);

// Raises RocksDB's last sequence from 0 to 1 if one of these families has a
// table. Writes a range deletion from a key to the same key: it gets a sequence
// number and a WAL record, but deletes nothing, even when the WAL is replayed.
// Sets *spent if it wrote the range deletion. Threads: any; the application may
// read, write and compact meanwhile.
//   kRefused  RocksDB accepts no range deletions in any of the families
[[nodiscard]] rocksdb::Status SpendFirstSequence(
    rocksdb::DB* db,
    const std::vector<rocksdb::ColumnFamilyHandle*>& families, bool* spent);

// Raises the last sequence permanently, by deleting a random key that does not
// exist. Uses a family with one of RocksDB's own comparators, because an
// application's comparator may reject the key. If there is no such family,
// calls SpendFirstSequence() instead. Sets *left to true if it wrote to the
// database.
[[nodiscard]] rocksdb::Status LeaveSequenceZero(
    rocksdb::DB* db,
    const std::vector<rocksdb::ColumnFamilyHandle*>& families, bool* left);

}  // namespace sstferry
