// Classifies the records of a MANIFEST: those that do not change what a
// recovery finds, and barriers.
//
// A standby that has the MANIFEST and the tables of an earlier moment, and all
// WALs since, recovers the database's present contents as long as the later
// MANIFEST records only move entries: from WALs into tables (a flush), or from
// tables into other tables (a compaction). Any other record may stand for data
// that no WAL has, or for data in WALs that tables no longer have. So a record
// is a barrier unless it is proved to be one of these. An unnecessary barrier
// costs a copy of the files; a missed one would go unnoticed.
//
//   flush        adds tables of level 0, removes none, and sets the number of
//                the WAL up to which the family's entries are in tables. An
//                ingestion or an import adds tables without such a number.
//   compaction   removes tables, and adds only tables whose keys and epochs lie
//                within those that it removes, without newer sequence numbers.
//                RocksDB's atomic_replace_range also does both, but gives the
//                added tables an epoch of their own.
//   bookkeeping  numbers: of files, sequences and WALs; a compaction's cursor.
//
// So barriers are, among others: ingestions and imports; families that are
// added or dropped; tables that are only removed (DeleteFilesInRange, FIFO, and
// compactions without output); full_history_ts_low; tags that this version does
// not know, even those that RocksDB lets a reader ignore.
//
// A compaction filter changes what readers see without any record of it.
#pragma once

#include <cstdint>
#include <string>

#include "format/rocksdb/manifest_state.h"
#include "format/rocksdb/version_edit.h"

namespace sstferry {

enum class EditKind : uint8_t { kBookkeeping, kFlush, kCompaction, kBarrier };

// Classifies an edit by the state to which it is applied. For a barrier, sets
// *why to what the edit does; `why` may be null. Threads: any.
EditKind JudgeEdit(const VersionEdit& edit, const ManifestState& before,
                   std::string* why);

}  // namespace sstferry
