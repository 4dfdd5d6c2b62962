// Keeps a database from standing at sequence 0 with entries in it.
//
// Ingestion may leave every entry, and RocksDB's last sequence number, at 0. A
// snapshot that is taken then has sequence 0, and RocksDB before 9.10 drops the
// entries at 0 from each compaction that runs beside such a snapshot
// (facebook/rocksdb#13155): they are gone for all readers. A last sequence of 1
// or more ends it, because no later snapshot has sequence 0.
//
//   closed directory    RaiseLastSequence() appends to the MANIFEST
//   open database       SpendFirstSequence() makes RocksDB assign a number to
//                       a range deletion of nothing. That ends when the
//                       database is closed, unless its MANIFEST has changed
//                       since: an ingest changes it
//   application's one   LeaveSequenceZero() deletes a key that nobody has,
//                       which lasts
//
// The last sequence proves nothing about what a database holds, and nothing in
// this project takes it for evidence.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// Sets *at_zero if the database in `dir` has tables, its MANIFEST records last
// sequence 0, and its WALs hold no entry. Reads files only; the database may be
// open.
[[nodiscard]] rocksdb::Status StandsAtZero(rocksdb::FileSystem* file_system,
                                           const std::string& dir,
                                           bool* at_zero);

// Makes RocksDB's last sequence at least `at_least`, and at least 1, by an edit
// at the end of the MANIFEST, which is replaced as a whole: a crash leaves the
// old one or the new one. Changes nothing if it is that high already.
// REQUIRES: no process has the database in `dir` open.
//   kCorrupt   the MANIFEST is damaged
//   kInternal  the MANIFEST does not end with a whole record
[[nodiscard]] rocksdb::Status RaiseLastSequence(
    rocksdb::FileSystem* file_system, const std::string& dir,
    uint64_t at_least);

// Makes RocksDB's last sequence 1 if it is 0 and one of these families has a
// table: writes a range deletion whose ends are the same key, which RocksDB
// logs and counts and applies to nothing, also when it replays the WAL. Sets
// *spent if it did.
// Threads: any; the application may read, write and compact meanwhile.
//   kRefused   RocksDB takes no range deletions for any of the families
[[nodiscard]] rocksdb::Status SpendFirstSequence(
    rocksdb::DB* db,
    const std::vector<rocksdb::ColumnFamilyHandle*>& families, bool* spent);

// The same for good: deletes a random key, of a family whose order RocksDB
// itself defines. Without such a family it is SpendFirstSequence(), because an
// application's comparator need not take a key that the application did not
// make.
[[nodiscard]] rocksdb::Status LeaveSequenceZero(
    rocksdb::DB* db,
    const std::vector<rocksdb::ColumnFamilyHandle*>& families, bool* left);

}  // namespace sstferry
