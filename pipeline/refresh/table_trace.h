// Finds in the database's MANIFEST what happened to a target's tables since
// they were recorded. A compaction replaces tables by others with the same
// entries, so only keys of tables that were added or removed otherwise may have
// changed.
//
// A MANIFEST begins with the tables that were live when RocksDB opened the
// database, and records every change since. It proves nothing about the time
// before. A table counts as the output of a compaction only if the same record
// removes other tables, and if this database wrote it: RocksDB may also ingest
// a table in place of others.
//
// The input entries of a compaction must be in its output, as far as the
// properties of the tables show: RocksDB may drop an entry only if the input
// has a newer one of its key, a deletion or a merge. For example, tables of 900
// and 100 puts with distinct keys each give at least 900 entries, however many
// keys they share. So an output of 60 entries proves nothing, and the spans of
// all tables involved are doubted. (Some versions of RocksDB did that beside a
// snapshot at sequence 0: first_sequence.h.) The number of entries of a table
// that was added and removed in between is unknown. So if a compaction read
// such a table, or one with range deletions, the span of every other input
// table that it overlaps is doubted.
//
// A compaction filter changes entries, and only the newest OPTIONS file names
// it. So a compaction is trusted only if that file is newer than the MANIFEST
// and older than the tables that the compaction wrote.
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

// Keys whose entries may have changed; both bounds belong to the span.
struct ChangedSpan {
  std::string smallest;
  std::string largest;
  // RocksDB's unique id if the table was only added; else unset.
  std::optional<Digest128> added = {};
};

// A column family to trace. Borrows everything that it points to.
struct TracedFamily {
  std::string name;
  const rocksdb::Comparator* order = nullptr;
  const std::vector<RecordedTable>* then = nullptr;  // all of its tables
  const std::vector<LiveTable>* now = nullptr;
  // Tables that were ingested since, as far as known; may be null.
  const std::vector<RecordedTable>* added = nullptr;
  // Set by TraceTables(). False: the MANIFEST does not show it.
  bool is_known = false;
  std::vector<ChangedSpan> changed = {};
};

// Reads the MANIFEST of the database in `dir`, which may be open and in use. If
// it cannot be read, is_known is false for all families. REQUIRES: the newest
// OPTIONS file names no compaction filter for these families, and `now` was
// listed before the call.
void TraceTables(rocksdb::FileSystem* file_system, const std::string& dir,
                 std::vector<TracedFamily>* families);

// Returns the id that RocksDB's GetUniqueIdFromTableProperties() gives for a
// table with this id in the MANIFEST.
Digest128 PublicTableId(const Digest128& in_manifest);

}  // namespace sstferry
