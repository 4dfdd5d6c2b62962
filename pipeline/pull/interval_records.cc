#include "pipeline/pull/interval_records.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "format/source_record.h"
#include "pipeline/base/key_interval.h"
#include "pipeline/disk/durable.h"
#include "pipeline/pull/table_changes.h"
#include "rocksdb/file_system.h"

namespace sstferry {
namespace {

using rocksdb::Comparator;
using rocksdb::Status;

// A span of keys; both belong to it.
struct Span {
  std::string smallest;
  std::string largest;
};

// Finds out whether an interval overlaps one of many spans.
class Spans {
 public:
  Spans(const Comparator* order, std::vector<Span> spans)
      : order_(order), spans_(std::move(spans)) {
    std::sort(spans_.begin(), spans_.end(),
              [order](const Span& a, const Span& b) {
                return order->Compare(a.smallest, b.smallest) < 0;
              });
    const Span* furthest = nullptr;
    for (const Span& span : spans_) {
      if (furthest == nullptr ||
          order->Compare(furthest->largest, span.largest) < 0) {
        furthest = &span;
      }
      furthest_.push_back(furthest);
    }
  }
  Spans(const Spans&) = delete;
  Spans& operator=(const Spans&) = delete;

  bool Meet(const KeyInterval& interval) const {
    const auto after = std::partition_point(
        spans_.begin(), spans_.end(), [&](const Span& span) {
          return EndsAfter(interval, order_, span.smallest);
        });
    const size_t count = static_cast<size_t>(after - spans_.begin());
    return count != 0 && BeginsAtOrBefore(interval, order_,
                                          furthest_[count - 1]->largest);
  }

 private:
  const Comparator* const order_;
  std::vector<Span> spans_;  // by smallest key
  std::vector<const Span*> furthest_;
};

const RecordedFamily* FindFamily(const IntervalFile& record,
                                const std::string& name, uint32_t* index) {
  for (size_t i = 0; i < record.families.size(); ++i) {
    if (record.families[i].name == name) {
      *index = static_cast<uint32_t>(i);
      return &record.families[i];
    }
  }
  return nullptr;
}

bool IsOutside(const KeyInterval& interval, const KeyInterval& selected,
               const Comparator* order) {
  return (interval.end && selected.begin &&
          order->Compare(*interval.end, *selected.begin) <= 0) ||
         (interval.begin && selected.end &&
          order->Compare(*interval.begin, *selected.end) >= 0);
}

using Id = std::pair<uint64_t, uint64_t>;

// Returns the chunks of a family as the tables that they are. A chunk's record
// does not tell deletions from puts.
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

// Returns the spans of changes that chunks of the journal do not explain. Each
// chunk counts once.
std::vector<Span> Unexplained(const JournalState& journal, uint32_t family,
                              const TableChanges& changes) {
  std::vector<Span> spans;
  std::map<Id, Span> chunks;
  for (const Part& part : journal.plan.parts) {
    if (part.family != family) {
      continue;
    }
    for (const JournalChunk& chunk : journal.chunks[part.id]) {
      const std::optional<Digest128> id = TableIdOf(chunk);
      const Span span{chunk.chunk.smallest, chunk.chunk.largest};
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

std::vector<Span> SpansOf(const std::vector<ChangedSpan>& changed) {
  std::vector<Span> spans;
  for (const ChangedSpan& each : changed) {
    spans.push_back({each.smallest, each.largest});
  }
  return spans;
}

// Doubts the records of one family that overlap these spans.
void Doubt(const Comparator* order, std::vector<Span> spans, uint32_t family,
           IntervalFile* intervals) {
  if (spans.empty()) {
    return;
  }
  const Spans doubted(order, std::move(spans));
  for (IntervalRecord& interval_record : intervals->intervals) {
    interval_record.doubted =
        interval_record.doubted || (interval_record.family == family &&
                                    doubted.Meet(interval_record.interval));
  }
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

// Tables that are in `searched` without a doubt hold no SingleDelete.
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

// This process alone writes what has changed since all tables were searched.
void TakeAllSearched(std::vector<LiveTable>* tables) {
  for (LiveTable& table : *tables) {
    table.may_single_delete = false;
  }
}

// Appends the records of a family of `from` that `keep` chooses.
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

// Appends these families: the files that they hold now, and the judged records
// that `keep` chooses. Doubts records as RecordIntervals() says.
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
    FindChanges(db, &states);
  }
  for (uint32_t i = 0; i < families.size(); ++i) {
    const FamilyHandle& family = families[i];
    const Comparator* const order = family.handle->GetComparator();
    uint32_t old_index = 0;
    if (FindFamily(judged.record, family.name, &old_index) != nullptr) {
      KeepIntervals(judged.record, old_index, i,
                 [&](const KeyInterval& interval) {
                   return keep(interval, order);
                 },
                 made);
    }
    std::vector<Span> doubtful = SpansOf(NamelessSpans(states[i].now));
    if (journal != nullptr) {
      doubtful = Unexplained(*journal, i, states[i]);
      for (Span& span :
           SpansOf(NamelessSpans(TablesOf(judged, family.name)))) {
        doubtful.push_back(std::move(span));
      }
    }
    Doubt(order, std::move(doubtful), i, made);
    made->families.push_back({family.name, NamedTables(states[i].now)});
  }
  return Status::OK();
}

// Appends the families that the pull did not ask for: their files and records
// stay those of the same point in time.
void AddOthers(const IntervalFile& before, IntervalFile* made) {
  for (uint32_t i = 0; i < before.families.size(); ++i) {
    uint32_t taken = 0;
    if (FindFamily(*made, before.families[i].name, &taken) == nullptr) {
      KeepIntervals(before, i, static_cast<uint32_t>(made->families.size()),
                 [](const KeyInterval&) { return true; }, made);
      made->families.push_back(before.families[i]);
    }
  }
}

}  // namespace

std::string SourceIdOf(const PullOptions& options, const Plan& plan) {
  return options.source_id.empty() ? plan.opened.source_database_id
                                   : options.source_id;
}

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

Status WriteIntervals(rocksdb::FileSystem* file_system, const std::string& dir,
                   IntervalFile intervals) {
  std::string text;
  Status status = EncodeIntervalFile(intervals, &text);
  if (!status.ok()) {
    intervals.intervals.clear();
    for (RecordedFamily& family : intervals.families) {
      family.files.clear();
    }
    text.clear();
    status = EncodeIntervalFile(intervals, &text);
  }
  return status.ok()
             ? WriteDurably(file_system, dir + "/" + kIntervalFileName, text)
             : status;
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

Status WriteSourceRecord(rocksdb::FileSystem* file_system,
                         const std::string& dir, const Plan& plan) {
  std::string text;
  EncodeSourceRecordFile(plan.opened.transfer_id, plan.source_record, &text);
  return WriteDurably(file_system, dir + "/" + kSourceRecordName, text);
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
    const RecordedFamily* const known = FindFamily(record, family.name, &index);
    if (known != nullptr) {
      TakeSearched(known->files, &found.tables);
      states.push_back({&family, known->files, found.tables});
    }
    judged->families.push_back(std::move(found));
  }
  FindChanges(db, &states);
  for (const TableChanges& state : states) {
    uint32_t index = 0;
    if (FindFamily(record, state.family->name, &index) != nullptr) {
      Doubt(state.family->handle->GetComparator(), SpansOf(state.changed),
            index, &judged->record);
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
    if (is_known && FindFamily(record, family.name, &recorded) != nullptr) {
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
        return same_source && IsOutside(interval, selected, order);
      },
      &made);
  if (status.ok() && same_source) {
    AddOthers(before, &made);
  }
  *intervals = std::move(made);
  return status;
}

Status RecordTables(rocksdb::DB* db, const std::vector<FamilyHandle>& families,
                    IntervalFile* intervals) {
  for (const FamilyHandle& family : families) {
    uint32_t index = 0;
    if (FindFamily(*intervals, family.name, &index) == nullptr) {
      continue;
    }
    std::vector<LiveTable> tables;
    RETURN_IF_ERROR(ListLiveTables(db, family.handle, &tables));
    TakeAllSearched(&tables);
    Doubt(family.handle->GetComparator(), SpansOf(NamelessSpans(tables)), index,
          intervals);
    intervals->families[index].files = NamedTables(tables);
  }
  return Status::OK();
}

}  // namespace sstferry
