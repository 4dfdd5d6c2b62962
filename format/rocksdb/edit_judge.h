// Tells which records of a MANIFEST leave what a recovery would find as it is.
//
// Whoever holds the MANIFEST and the tables of an earlier moment, and all WALs
// since, recovers what the database holds now, as long as the records behind
// that MANIFEST only say that entries moved: from WALs into tables (a flush), or
// from tables into others (a compaction). Anything else may be data that no WAL
// has, or that WALs have and tables no longer do. So a record is a barrier
// unless it is proved to be one of these; a false barrier costs a copy of the
// files, a missed one would be silent.
//
//   flush        adds tables of level 0 and removes none, and says up to which
//                WAL the family's entries are in tables. An ingestion, and an
//                import, add tables and say no such number.
//   compaction   removes tables, and adds only tables whose keys, sequence
//                numbers and epochs lie within those that it removes. RocksDB's
//                atomic_replace_range also does both, and gives what it adds an
//                epoch of its own.
//   bookkeeping  numbers: of files, sequences and WALs; a compaction's cursor.
//
// Barriers are thus, among others: ingestions and imports; families that are
// added or dropped; tables that are only removed (DeleteFilesInRange, FIFO, and
// compactions that leave nothing); full_history_ts_low; what this version does
// not know, although RocksDB lets a reader ignore it.
//
// A compaction filter changes what readers see without any record of it.
#pragma once

#include <cstdint>
#include <string>

#include "format/rocksdb/manifest_state.h"
#include "format/rocksdb/version_edit.h"

namespace sstferry {

enum class EditKind : uint8_t { kBookkeeping, kFlush, kCompaction, kBarrier };

// Judges an edit by the state that it is applied to. `why`, of a barrier, says
// what it does; it may be null.
// Threads: any.
EditKind JudgeEdit(const VersionEdit& edit, const ManifestState& before,
                   std::string* why);

}  // namespace sstferry
