// Compares the tables of a target's column families with those of an earlier
// time: where may a reader see something else than then? SST files never
// change, so the same files hold the same entries. Compactions that the
// MANIFEST proves (pipeline/refresh/table_trace.h) count as no change.
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
  // Tables that this refresh ingests: what a compaction may take besides those
  // of then.
  std::vector<RecordedTable> chunks = {};
  // Set by FindTableChanges(). Tables of now without a unique id count as
  // changed.
  std::vector<ChangedSpan> changed = {};
};

// Sets `changed` of each. REQUIRES: `now` was listed before the call.
void FindTableChanges(rocksdb::DB* db, std::vector<TableChanges>* families);

}  // namespace sstferry
