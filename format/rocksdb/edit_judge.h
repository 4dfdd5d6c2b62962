// Classifies the records of a MANIFEST. A record is harmless if it does not
// change the contents that a recovery finds. Any other record is a barrier.
//
// Assume that a standby has the MANIFEST and the tables of an earlier moment,
// and all WALs that were written since. RocksDB recovers the source's present
// contents from them if later MANIFEST records only move entries: from WALs
// into tables (a flush), or from tables into other tables (a compaction). Any
// other record is dangerous. It may add data that is in no WAL, or remove data
// that the WALs still contain. So a record is a barrier unless it is proved to
// be harmless. An unnecessary barrier only costs a copy of the files. A missed
// barrier could make the standby wrong, and nobody would notice.
//
//   flush        adds tables of level 0, removes none, and sets the number of
//                the WAL up to which the family's entries are in tables. An
//                ingestion or an import adds tables without such a number.
//   compaction   removes tables, and adds only tables whose keys and epochs are
//                within those of the removed tables, without newer sequence
//                numbers. RocksDB's atomic_replace_range also removes and adds
//                tables, but gives the added tables a new epoch.
//   bookkeeping  numbers: of files, sequences and WALs; a compaction's cursor.
//
// Barriers include: ingestions and imports; added or dropped families; removals
// of tables without added tables (DeleteFilesInRange, FIFO, and compactions
// without output); full_history_ts_low; tags that this version does not know,
// even tags that RocksDB lets a reader ignore.
//
// A compaction filter also changes the contents, but no record shows this.
#pragma once

#include <cstdint>
#include <string>

#include "format/rocksdb/manifest_state.h"
#include "format/rocksdb/version_edit.h"

namespace sstferry {

enum class EditKind : uint8_t { kBookkeeping, kFlush, kCompaction, kBarrier };

// Classifies an edit. `before` is the state before the edit is applied. For a
// barrier, sets *why to a description of what the edit does; `why` may be null.
// Threads: any.
EditKind JudgeEdit(const VersionEdit& edit, const ManifestState& before,
                   std::string* why);

}  // namespace sstferry
