// Compares the tables of a target's column families with those of an earlier
// time, to find where a reader may see something else. SST files never change,
// so the same files hold the same entries. Compactions that the MANIFEST proves
// (pipeline/refresh/table_trace.h) count as no change.
#pragma once

#include <vector>

#include "format/interval_file.h"
#include "pipeline/pull/live_tables.h"
#include "pipeline/refresh/table_trace.h"
#include "rocksdb/db.h"
#include "rocksdb/status.h"

namespace sstferry {

// A column family at two times, and what may have changed in between.
struct TableChanges {
  const FamilyHandle* family = nullptr;
  std::vector<RecordedTable> then = {};
  std::vector<LiveTable> now = {};
  // Tables that this refresh ingests, which a compaction may read in addition
  // to those of `then`.
  std::vector<RecordedTable> chunks = {};
  // Set by FindTableChanges(). Tables in `now` without a unique id count as
  // changed.
  std::vector<ChangedSpan> changed = {};
};

// Sets `changed` of each family. REQUIRES: `now` was listed before the call.
void FindTableChanges(rocksdb::DB* db, std::vector<TableChanges>* families);

}  // namespace sstferry
