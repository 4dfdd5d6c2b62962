// Finds out what became of a target's tables since they were recorded, by the
// database's MANIFEST. A compaction replaces tables by others with the same
// entries, so only keys of tables that came or went otherwise may have changed.
//
// A MANIFEST begins with the tables that were live when RocksDB opened the
// database, and tells every change since. It proves nothing about a time before
// that. A table is taken for one that a compaction made only if the same record
// takes other tables away, and if this database wrote it: RocksDB may also
// ingest a table in the place of others.
//
// The entries that a compaction took must have come out of it, as far as the
// properties of the tables tell: RocksDB may drop an entry only if a newer one
// of its key, a deletion or a merge went in. For example, tables of 900 and 100
// puts with keys of their own give at least 900 entries, whatever keys they
// share, so 60 are no evidence of anything, and the spans of all tables
// involved are doubted. (A RocksDB did that beside a snapshot at sequence 0:
// first_sequence.h.) How many entries a table had that came and went in
// between, nobody knows. So where a compaction took such a table, or one with
// range deletions, the span of every other one that it overlaps is doubted.
//
// A compaction filter changes entries, and only the newest OPTIONS file names
// it. So a compaction is believed only if that file is newer than the MANIFEST
// and older than the tables that the compaction made.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "format/interval_file.h"
#include "format/digest.h"
#include "pipeline/pull/live_tables.h"
#include "rocksdb/comparator.h"
#include "rocksdb/file_system.h"

namespace sstferry {

// Keys whose entries may have changed; both belong to the span.
struct ChangedSpan {
  std::string smallest;
  std::string largest;
  // RocksDB's unique id of a table that was only added; none for others.
  std::optional<Digest128> added = {};
};

// A column family and what is asked about it. Borrows all that it points to.
struct TracedFamily {
  std::string name;
  const rocksdb::Comparator* order = nullptr;
  const std::vector<RecordedTable>* then = nullptr;  // all of its tables
  const std::vector<LiveTable>* now = nullptr;
  // Tables that were ingested since, as far as they are known; may be null.
  const std::vector<RecordedTable>* added = nullptr;
  // Set by TraceTables(). False: the MANIFEST does not tell.
  bool is_known = false;
  std::vector<ChangedSpan> changed = {};
};

// Reads the MANIFEST of the database in `dir`, which may be open and in use. If
// it cannot be read, is_known is false for all.
// REQUIRES: no compaction filter is named by the newest OPTIONS file for these
// families, and `now` was listed before the call.
void TraceTables(rocksdb::FileSystem* file_system, const std::string& dir,
                 std::vector<TracedFamily>* families);

// Returns the id that RocksDB's GetUniqueIdFromTableProperties() gives for a
// table whose MANIFEST has this one.
Digest128 PublicTableId(const Digest128& in_manifest);

}  // namespace sstferry
