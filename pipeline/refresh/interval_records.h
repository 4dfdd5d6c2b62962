// Manages the interval records of a target (format/interval_file.h). A refresh
// reads them, judges them by the target's present files (table_changes.h), and
// writes new ones at its end. Sequence numbers and levels prove nothing.
#pragma once

#include <string>
#include <vector>

#include "format/interval_file.h"
#include "format/plan.h"
#include "pipeline/pull/journal_state.h"
#include "pipeline/pull/live_tables.h"
#include "rocksdb/comparator.h"
#include "rocksdb/db.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// Reads the file sstferry.intervals in `dir`. *found is false if it is missing.
//   Corruption  it is damaged
[[nodiscard]] rocksdb::Status ReadIntervals(rocksdb::FileSystem* file_system,
                                         const std::string& dir, bool* found,
                                         IntervalFile* intervals);

// Reads the source's record (format/source_record.h) from the file
// sstferry.source. *record is empty if the file is missing, damaged, or from
// another transfer than `intervals`.
[[nodiscard]] rocksdb::Status ReadSourceRecord(rocksdb::FileSystem* file_system,
                                               const std::string& dir,
                                               const IntervalFile& intervals,
                                               std::string* record);

// The tables of one column family when the target was judged.
struct JudgedFamily {
  std::string name;
  const rocksdb::Comparator* order = nullptr;
  std::vector<LiveTable> tables;
};

// A target as found by a refresh.
struct JudgedTarget {
  IntervalFile record;  // interval records, doubted if files have changed
  std::string source_record;  // the source's notes from the same transfer
  std::vector<JudgedFamily> families;
};

// Sets *judged to `record` and the present tables of these families, which also
// replace those of the record. Doubts an interval record that was doubted
// before, or whose keys may have changed since it was written. Doubts all of
// them if `record` is from another database. REQUIRES: memtables are flushed,
// or FamilyHandle::unflushed lists their keys.
[[nodiscard]] rocksdb::Status JudgeIntervals(
    const IntervalFile& record, rocksdb::DB* db,
    const std::vector<FamilyHandle>& families, JudgedTarget* judged);

// Appends a sentence for each family of `record` in which other writers have
// changed the target since: how many of its intervals are doubted for that.
void AddDoubtNotes(const IntervalFile& record, const JudgedTarget& judged,
                   std::vector<std::string>* notes);

// Describes the target for the source: its families, whether they hold
// anything, and the interval records. With --adopt the origin of the data is
// unknown, so interval records are left out unless --source-id names their
// source.
void DescribeTarget(const PullOptions& options, const JudgedTarget& judged,
                    ReplicaRecord* replica);

// Sets *intervals to the records of a target after the transfer of `plan`.
// `families` are those of the plan, by index. Keeps the judged records of keys
// that the pull did not request, and all records of other families. `journal`
// null: no other process could write since the target was judged, and this
// process dropped no entries, so every part of the plan is proved. Otherwise a
// record is proved only where the files are the judged ones and the journal's
// chunks.
[[nodiscard]] rocksdb::Status RecordIntervals(
    const PullOptions& options, const Plan& plan, rocksdb::DB* db,
    const std::vector<FamilyHandle>& families, const JudgedTarget& judged,
    const JournalState* journal, IntervalFile* intervals);

}  // namespace sstferry
