// Writes and reads the records that every pull leaves in a replica for later
// refreshes: interval records (format/interval_file.h) and the source's record
// (format/source_record.h). refresh/ reads and judges them.
#pragma once

#include <string>
#include <vector>

#include "format/interval_file.h"
#include "format/plan.h"
#include "pipeline/pull/live_tables.h"
#include "rocksdb/comparator.h"
#include "rocksdb/db.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// A span of keys that includes both ends.
struct KeySpan {
  std::string smallest;
  std::string largest;
};

// Returns the id by which a target knows its source: options.source_id if set,
// otherwise the source's database id.
std::string SourceIdOf(const PullOptions& options, const Plan& plan);

// Writes sstferry.intervals durably. Omits the interval records if the file
// would be too large.
[[nodiscard]] rocksdb::Status WriteIntervals(rocksdb::FileSystem* file_system,
                                             const std::string& dir,
                                             IntervalFile intervals);
// Writes the source's record durably, in the file sstferry.source.
[[nodiscard]] rocksdb::Status WriteSourceRecord(
    rocksdb::FileSystem* file_system, const std::string& dir,
    const Plan& plan);

// Sets *intervals to the records of a new database, from the plan. `families`
// are those of the plan, by index.
[[nodiscard]] rocksdb::Status RecordNew(
    const PullOptions& options, const Plan& plan, rocksdb::DB* db,
    const std::vector<FamilyHandle>& families, IntervalFile* intervals);

// Updates the files in `intervals`. REQUIRES: only this process could have
// changed them since they were judged, and it dropped no entries.
[[nodiscard]] rocksdb::Status RecordTables(
    rocksdb::DB* db, const std::vector<FamilyHandle>& families,
    IntervalFile* intervals);

// Returns null if there is no such family; otherwise sets *index to its index.
const RecordedFamily* FindRecordedFamily(const IntervalFile& record,
                                         const std::string& name,
                                         uint32_t* index);
// Returns the tables with a unique id, which a record can name.
std::vector<RecordedTable> NamedTables(const std::vector<LiveTable>& tables);
// Returns the spans of all other tables, for which a record proves nothing.
std::vector<KeySpan> NamelessSpans(const std::vector<LiveTable>& tables);
// Marks the records of one family that overlap these spans as doubted.
void DoubtIntervals(const rocksdb::Comparator* order,
                    std::vector<KeySpan> spans, uint32_t family,
                    IntervalFile* intervals);
// Marks tables as searched. Valid if only this process has changed the database
// since all tables were searched for a SingleDelete.
void TakeAllSearched(std::vector<LiveTable>* tables);

}  // namespace sstferry
