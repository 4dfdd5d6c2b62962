#include "pipeline/refresh/interval_records.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "format/source_record.h"
#include "pipeline/base/key_interval.h"
#include "pipeline/pull/refresh_records.h"
#include "pipeline/refresh/table_changes.h"
#include "rocksdb/file_system.h"

namespace sstferry {
namespace {

using rocksdb::Comparator;
using rocksdb::Status;

using Id = std::pair<uint64_t, uint64_t>;

// Returns the chunks of a family as tables. The record of a chunk does not
// distinguish deletions from puts.
std::vector<RecordedTable> ChunkTables(const JournalState& journal,
                                      uint32_t family) {
  std::vector<RecordedTable> tables;
  for (const Part& part : journal.plan.parts) {
    if (part.family != family) {
      continue;
    }
    for (const JournalChunk& chunk : journal.chunks[part.id]) {
      const std::optional<Digest128> id = TableIdOf(chunk);
      if (id) {
        RecordedTable table;
        table.id = *id;
        table.smallest = chunk.chunk.smallest;
        table.largest = chunk.chunk.largest;
        table.entries = chunk.chunk.entries;
        table.deletions = chunk.chunk.entries;
        tables.push_back(std::move(table));
      }
    }
  }
  return tables;
}

// Returns the spans of changes that are not explained by chunks of the journal.
// Each chunk counts once.
std::vector<KeySpan> Unexplained(const JournalState& journal, uint32_t family,
                              const TableChanges& changes) {
  std::vector<KeySpan> spans;
  std::map<Id, KeySpan> chunks;
  for (const Part& part : journal.plan.parts) {
    if (part.family != family) {
      continue;
    }
    for (const JournalChunk& chunk : journal.chunks[part.id]) {
      const std::optional<Digest128> id = TableIdOf(chunk);
      const KeySpan span{chunk.chunk.smallest, chunk.chunk.largest};
      if (id) {
        chunks.emplace(Id{id->high, id->low}, span);
      } else {
        spans.push_back(span);
      }
    }
  }
  for (const ChangedSpan& changed : changes.changed) {
    if (!changed.added ||
        chunks.erase({changed.added->high, changed.added->low}) == 0) {
      spans.push_back({changed.smallest, changed.largest});
    }
  }
  // An earlier run ingested these before the target was judged.
  for (const RecordedTable& table : changes.then) {
    chunks.erase({table.id.high, table.id.low});
  }
  for (auto& [id, span] : chunks) {
    spans.push_back(std::move(span));
  }
  return spans;
}

std::vector<KeySpan> SpansOf(const std::vector<ChangedSpan>& changed) {
  std::vector<KeySpan> spans;
  for (const ChangedSpan& each : changed) {
    spans.push_back({each.smallest, each.largest});
  }
  return spans;
}

const std::vector<LiveTable>& TablesOf(const JudgedTarget& judged,
                                       const std::string& name) {
  static const std::vector<LiveTable> kNone;
  for (const JudgedFamily& family : judged.families) {
    if (family.name == name) {
      return family.tables;
    }
  }
  return kNone;
}

// Marks tables that are recorded in `searched` as free of SingleDeletes.
void TakeSearched(const std::vector<RecordedTable>& searched,
                  std::vector<LiveTable>* tables) {
  std::set<Id> known;
  for (const RecordedTable& table : searched) {
    if (!table.may_single_delete) {
      known.insert({table.id.high, table.id.low});
    }
  }
  for (LiveTable& table : *tables) {
    table.may_single_delete =
        table.may_single_delete &&
        !(table.id && known.count({table.id->high, table.id->low}) != 0);
  }
}

// Appends the records of a family of `from` that `keep` selects.
void KeepIntervals(const IntervalFile& from, uint32_t family, uint32_t as,
                const std::function<bool(const KeyInterval&)>& keep,
                IntervalFile* intervals) {
  for (const IntervalRecord& interval_record : from.intervals) {
    if (interval_record.family == family && keep(interval_record.interval) &&
        intervals->intervals.size() < kMaxParts) {
      intervals->intervals.push_back(interval_record);
      intervals->intervals.back().family = as;
    }
  }
}

// Appends these families: their present files, and the judged records that
// `keep` selects. Doubts records as RecordIntervals() describes.
Status AddKept(rocksdb::DB* db, const std::vector<FamilyHandle>& families,
               const JudgedTarget& judged, const JournalState* journal,
               const std::function<bool(const KeyInterval&, const Comparator*)>&
                   keep,
               IntervalFile* made) {
  made->target_database_id = DatabaseIdOf(db);
  std::vector<TableChanges> states;
  for (uint32_t i = 0; i < families.size(); ++i) {
    const FamilyHandle& family = families[i];
    TableChanges state{&family};
    RETURN_IF_ERROR(ListLiveTables(db, family.handle, &state.now));
    if (journal != nullptr) {
      state.then = NamedTables(TablesOf(judged, family.name));
      TakeSearched(state.then, &state.now);
      state.chunks = ChunkTables(*journal, i);
    } else {
      TakeAllSearched(&state.now);
    }
    states.push_back(std::move(state));
  }
  if (journal != nullptr) {
    FindTableChanges(db, &states);
  }
  for (uint32_t i = 0; i < families.size(); ++i) {
    const FamilyHandle& family = families[i];
    const Comparator* const order = family.handle->GetComparator();
    uint32_t old_index = 0;
    if (FindRecordedFamily(judged.record, family.name, &old_index) != nullptr) {
      KeepIntervals(judged.record, old_index, i,
                 [&](const KeyInterval& interval) {
                   return keep(interval, order);
                 },
                 made);
    }
    std::vector<KeySpan> doubtful = NamelessSpans(states[i].now);
    if (journal != nullptr) {
      doubtful = Unexplained(*journal, i, states[i]);
      for (KeySpan& span : NamelessSpans(TablesOf(judged, family.name))) {
        doubtful.push_back(std::move(span));
      }
    }
    DoubtIntervals(order, std::move(doubtful), i, made);
    made->families.push_back({family.name, NamedTables(states[i].now)});
  }
  return Status::OK();
}

// Appends the families that the pull did not request, with unchanged files and
// records from the same point in time.
void AddOthers(const IntervalFile& before, IntervalFile* made) {
  for (uint32_t i = 0; i < before.families.size(); ++i) {
    uint32_t taken = 0;
    if (FindRecordedFamily(*made, before.families[i].name, &taken) == nullptr) {
      KeepIntervals(before, i, static_cast<uint32_t>(made->families.size()),
                 [](const KeyInterval&) { return true; }, made);
      made->families.push_back(before.families[i]);
    }
  }
}

}  // namespace

Status ReadIntervals(rocksdb::FileSystem* file_system, const std::string& dir,
                  bool* found, IntervalFile* intervals) {
  const std::string path = dir + "/" + kIntervalFileName;
  std::string text;
  const Status status = rocksdb::ReadFileToString(file_system, path, &text);
  *found = !status.IsNotFound() && !status.IsPathNotFound();
  if (!*found) {
    *intervals = IntervalFile();
    return Status::OK();
  }
  return status.ok() ? DecodeIntervalFile(text, intervals)
                     : WithContext(status, EndStateOf(status), path);
}

Status ReadSourceRecord(rocksdb::FileSystem* file_system,
                        const std::string& dir, const IntervalFile& intervals,
                        std::string* record) {
  const std::string path = dir + "/" + kSourceRecordName;
  record->clear();
  std::string text;
  Status status = rocksdb::ReadFileToString(file_system, path, &text);
  if (status.IsNotFound() || status.IsPathNotFound()) {
    return Status::OK();
  }
  TransferId transfer_id{};
  if (status.ok()) {
    status = DecodeSourceRecordFile(text, &transfer_id, record);
  }
  if (status.IsCorruption() ||
      (status.ok() && transfer_id != intervals.transfer_id)) {
    record->clear();
    return Status::OK();
  }
  return status.ok() ? status : WithContext(status, EndStateOf(status), path);
}

Status JudgeIntervals(const IntervalFile& record, rocksdb::DB* db,
                   const std::vector<FamilyHandle>& families,
                   JudgedTarget* judged) {
  judged->record = record;
  judged->families.clear();
  const bool same_database = !record.target_database_id.empty() &&
                             record.target_database_id == DatabaseIdOf(db);
  for (IntervalRecord& interval_record : judged->record.intervals) {
    interval_record.doubted = interval_record.doubted || !same_database;
  }
  std::vector<TableChanges> states;
  for (const FamilyHandle& family : families) {
    JudgedFamily found{family.name, family.handle->GetComparator(), {}};
    RETURN_IF_ERROR(ListLiveTables(db, family.handle, &found.tables));
    found.tables.insert(found.tables.end(), family.unflushed.begin(),
                        family.unflushed.end());
    uint32_t index = 0;
    const RecordedFamily* const known =
        FindRecordedFamily(record, family.name, &index);
    if (known != nullptr) {
      TakeSearched(known->files, &found.tables);
      states.push_back({&family, known->files, found.tables});
    }
    judged->families.push_back(std::move(found));
  }
  FindTableChanges(db, &states);
  for (const TableChanges& state : states) {
    uint32_t index = 0;
    if (FindRecordedFamily(record, state.family->name, &index) != nullptr) {
      DoubtIntervals(state.family->handle->GetComparator(),
                     SpansOf(state.changed), index, &judged->record);
      judged->record.families[index].files = NamedTables(state.now);
    }
  }
  return Status::OK();
}

void AddDoubtNotes(const IntervalFile& record, const JudgedTarget& judged,
                   std::vector<std::string>* notes) {
  for (uint32_t family = 0; family < record.families.size(); ++family) {
    uint64_t all = 0;
    uint64_t doubted = 0;
    for (size_t i = 0; i < record.intervals.size(); ++i) {
      if (record.intervals[i].family == family) {
        ++all;
        doubted +=
            judged.record.intervals[i].doubted && !record.intervals[i].doubted;
      }
    }
    if (doubted > 0) {
      notes->push_back("column family '" + record.families[family].name +
                       "': " + std::to_string(doubted) + " of " +
                       std::to_string(all) +
                       " intervals must be compared, because the target was "
                       "written to or compacted there since its last refresh");
    }
  }
}

void DescribeTarget(const PullOptions& options, const JudgedTarget& judged,
                    ReplicaRecord* replica) {
  const IntervalFile& record = judged.record;
  const bool is_known =
      !options.adopt || (!options.source_id.empty() &&
                         options.source_id == record.source_database_id);
  for (const JudgedFamily& family : judged.families) {
    const uint32_t index = static_cast<uint32_t>(replica->families.size());
    TargetFamily told;
    told.name = family.name;
    told.is_empty = family.tables.empty();
    replica->families.push_back(std::move(told));
    uint32_t recorded = 0;
    if (is_known &&
        FindRecordedFamily(record, family.name, &recorded) != nullptr) {
      for (const IntervalRecord& interval_record : record.intervals) {
        if (interval_record.family == recorded &&
            replica->intervals.size() < kMaxParts) {
          replica->intervals.push_back(interval_record);
          replica->intervals.back().family = index;
        }
      }
    }
  }
  if (is_known) {
    replica->source_record = judged.source_record;
  }
}

Status RecordIntervals(const PullOptions& options, const Plan& plan,
                    rocksdb::DB* db, const std::vector<FamilyHandle>& families,
                    const JudgedTarget& judged, const JournalState* journal,
                    IntervalFile* intervals) {
  const IntervalFile& before = judged.record;
  IntervalFile made;
  made.transfer_id = plan.opened.transfer_id;
  made.source_database_id = SourceIdOf(options, plan);
  made.sequence = plan.opened.snapshot_sequence;
  made.intervals = plan.intervals;
  const KeyInterval& selected = options.selection.interval;
  const bool same_source = before.source_database_id == made.source_database_id;
  const Status status = AddKept(
      db, families, judged, journal,
      [&](const KeyInterval& interval, const Comparator* order) {
        return same_source && (LiesBefore(interval, selected, order) ||
                               LiesBefore(selected, interval, order));
      },
      &made);
  if (status.ok() && same_source) {
    AddOthers(before, &made);
  }
  *intervals = std::move(made);
  return status;
}

}  // namespace sstferry
