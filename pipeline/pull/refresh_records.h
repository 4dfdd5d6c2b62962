// Writes and reads what every pull leaves in a replica for its later refreshes:
// interval records (format/interval_file.h) and the source's own
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

// A span of keys; both belong to it.
struct KeySpan {
  std::string smallest;
  std::string largest;
};

// Returns the id by which a target knows its source: options.source_id if set,
// else the source's database id.
std::string SourceIdOf(const PullOptions& options, const Plan& plan);

// Writes sstferry.intervals durably. If the file would be too large, leaves out
// the interval records.
[[nodiscard]] rocksdb::Status WriteIntervals(rocksdb::FileSystem* file_system,
                                             const std::string& dir,
                                             IntervalFile intervals);
// Writes the source's record durably, in the file sstferry.source.
[[nodiscard]] rocksdb::Status WriteSourceRecord(
    rocksdb::FileSystem* file_system, const std::string& dir,
    const Plan& plan);

// Sets *intervals to the records of a new database: all that the plan tells.
// `families` are those of the plan, by index.
[[nodiscard]] rocksdb::Status RecordNew(
    const PullOptions& options, const Plan& plan, rocksdb::DB* db,
    const std::vector<FamilyHandle>& families, IntervalFile* intervals);

// Updates the files in `intervals`. REQUIRES: nobody but this process could
// have changed them since they were judged, and it dropped no entries.
[[nodiscard]] rocksdb::Status RecordTables(
    rocksdb::DB* db, const std::vector<FamilyHandle>& families,
    IntervalFile* intervals);

// Returns null if there is no such family, else sets *index to its index.
const RecordedFamily* FindRecordedFamily(const IntervalFile& record,
                                         const std::string& name,
                                         uint32_t* index);
// Returns the tables with a unique id, which a record can name.
std::vector<RecordedTable> NamedTables(const std::vector<LiveTable>& tables);
// Returns the spans of all other tables, where a record proves nothing.
std::vector<KeySpan> NamelessSpans(const std::vector<LiveTable>& tables);
// Doubts the records of one family that overlap these spans.
void DoubtIntervals(const rocksdb::Comparator* order,
                    std::vector<KeySpan> spans, uint32_t family,
                    IntervalFile* intervals);
// Marks tables as searched: this process alone writes what has changed since
// all tables were searched for a SingleDelete.
void TakeAllSearched(std::vector<LiveTable>* tables);

}  // namespace sstferry
