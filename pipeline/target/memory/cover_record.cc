#include "pipeline/target/memory/cover_record.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "format/record/source_record.h"
#include "pipeline/base/key_interval.h"
#include "pipeline/target/disk/durable.h"
#include "rocksdb/file_system.h"

namespace sstferry {
namespace {

using rocksdb::Comparator;
using rocksdb::Status;

// Limit of the encoded bounds in one description of a target.
constexpr size_t kMaxBoundBytes = 4u << 20;

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

const CoveredFamily* FindFamily(const CoverFile& record,
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

auto FieldsOfTable(const CoveredTable& table) {
  return std::tie(table.id.high, table.id.low, table.smallest, table.largest,
                  table.bytes, table.smallest_sequence, table.largest_sequence);
}

bool TableLess(const CoveredTable& a, const CoveredTable& b) {
  return FieldsOfTable(a) < FieldsOfTable(b);
}

// Tables with a unique id, which a record can name, and the spans of the
// others, where a record proves nothing.
struct NamedTables {
  std::vector<CoveredTable> named;
  std::vector<Span> nameless;
};

NamedTables NamesOf(const std::vector<LiveTable>& tables) {
  NamedTables names;
  for (const LiveTable& table : tables) {
    if (table.id && table.smallest.size() <= kMaxKeyBytes &&
        table.largest.size() <= kMaxKeyBytes) {
      names.named.push_back({*table.id, table.smallest, table.largest,
                             table.bytes, table.smallest_sequence,
                             table.largest_sequence});
    } else {
      names.nameless.push_back({table.smallest, table.largest});
    }
  }
  return names;
}

// Appends the spans of tables that are in only one of two lists. A list may
// hold a table more than once.
void AddDifferences(std::vector<CoveredTable> before,
                    std::vector<CoveredTable> after, std::vector<Span>* spans) {
  std::sort(before.begin(), before.end(), TableLess);
  std::sort(after.begin(), after.end(), TableLess);
  std::vector<CoveredTable> different;
  std::set_symmetric_difference(before.begin(), before.end(), after.begin(),
                                after.end(), std::back_inserter(different),
                                TableLess);
  for (CoveredTable& table : different) {
    spans->push_back({std::move(table.smallest), std::move(table.largest)});
  }
}

// Appends the spans of files that are neither judged files nor chunks of the
// journal, and of those that are missing. Each chunk counts once.
void AddChanges(const std::vector<LiveTable>& judged,
                const JournalState& journal, uint32_t family,
                std::vector<CoveredTable> now, std::vector<Span>* spans) {
  using Id = std::pair<uint64_t, uint64_t>;
  std::map<Id, Span> chunks;
  for (const Range& range : journal.ranges) {
    for (const JournalChunk& chunk : journal.chunks[range.id]) {
      const std::optional<Digest128> id = TableIdOf(chunk);
      if (range.family != family) {
        continue;
      }
      const Span span{chunk.chunk.smallest, chunk.chunk.largest};
      if (id) {
        chunks.emplace(Id{id->high, id->low}, span);
      } else {
        spans->push_back(span);
      }
    }
  }
  NamedTables before = NamesOf(judged);
  spans->insert(spans->end(), before.nameless.begin(), before.nameless.end());
  // An earlier run ingested these chunks before the target was judged.
  std::erase_if(before.named, [&chunks](const CoveredTable& table) {
    return chunks.count({table.id.high, table.id.low}) != 0;
  });
  std::erase_if(now, [&chunks](const CoveredTable& table) {
    return chunks.erase({table.id.high, table.id.low}) != 0;
  });
  for (auto& [id, span] : chunks) {
    spans->push_back(std::move(span));
  }
  AddDifferences(std::move(before.named), std::move(now), spans);
}

// Doubts the records of one family that overlap these spans.
void Doubt(const Comparator* order, std::vector<Span> spans, uint32_t family,
           CoverFile* covers) {
  if (spans.empty()) {
    return;
  }
  const Spans doubted(order, std::move(spans));
  for (Cover& cover : covers->covers) {
    cover.doubted = cover.doubted ||
                    (cover.family == family && doubted.Meet(cover.interval));
  }
}

// Appends the keys at which the files of the lowest non-empty level end.
void AddBounds(const std::vector<LiveTable>& tables, uint32_t family,
               TargetMemory* memory) {
  int last = 0;
  for (const LiveTable& table : tables) {
    last = std::max(last, table.level);
  }
  for (const LiveTable& table : tables) {
    if (last != 0 && table.level == last &&
        table.largest.size() <= kMaxKeyBytes) {
      memory->bounds.push_back({family, table.largest});
    }
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

// Appends the records of a family of `from` that `keep` chooses.
void KeepCovers(const CoverFile& from, uint32_t family, uint32_t as,
                const std::function<bool(const KeyInterval&)>& keep,
                CoverFile* covers) {
  for (const Cover& cover : from.covers) {
    if (cover.family == family && keep(cover.interval) &&
        covers->covers.size() < kMaxRanges) {
      covers->covers.push_back(cover);
      covers->covers.back().family = as;
    }
  }
}

// Appends these families: the files that they hold now, and the judged records
// that `keep` chooses. Doubts records as RecordCovers() says.
Status AddKept(rocksdb::DB* db, const std::vector<FamilyHandle>& families,
               const JudgedTarget& judged, const JournalState* journal,
               const std::function<bool(const KeyInterval&, const Comparator*)>&
                   keep,
               CoverFile* made) {
  made->target_database_id = DatabaseIdOf(db);
  for (uint32_t i = 0; i < families.size(); ++i) {
    const FamilyHandle& family = families[i];
    const Comparator* const order = family.handle->GetComparator();
    std::vector<LiveTable> tables;
    const Status status = ListLiveTables(db, family.handle, &tables);
    if (!status.ok()) {
      return status;
    }
    NamedTables now = NamesOf(tables);
    uint32_t old_index = 0;
    if (FindFamily(judged.record, family.name, &old_index) != nullptr) {
      KeepCovers(judged.record, old_index, i,
                 [&](const KeyInterval& interval) {
                   return keep(interval, order);
                 },
                 made);
    }
    if (journal != nullptr) {
      AddChanges(TablesOf(judged, family.name), *journal, i, now.named,
                 &now.nameless);
    }
    Doubt(order, std::move(now.nameless), i, made);
    made->families.push_back({family.name, std::move(now.named)});
  }
  return Status::OK();
}

// Appends the families that the pull did not ask for: their files and records
// stay those of the same point in time.
void AddOthers(const CoverFile& before, CoverFile* made) {
  for (uint32_t i = 0; i < before.families.size(); ++i) {
    uint32_t taken = 0;
    if (FindFamily(*made, before.families[i].name, &taken) == nullptr) {
      KeepCovers(before, i, static_cast<uint32_t>(made->families.size()),
                 [](const KeyInterval&) { return true; }, made);
      made->families.push_back(before.families[i]);
    }
  }
}

}  // namespace

std::string SourceIdOf(const PullOptions& options, const SourcePlan& plan) {
  return options.source_id.empty() ? plan.opened.source_database_id
                                   : options.source_id;
}

Status ReadCovers(rocksdb::FileSystem* file_system, const std::string& dir,
                  bool* found, CoverFile* covers) {
  const std::string path = dir + "/" + kCoverFileName;
  std::string text;
  const Status status = rocksdb::ReadFileToString(file_system, path, &text);
  *found = !status.IsNotFound() && !status.IsPathNotFound();
  if (!*found) {
    *covers = CoverFile();
    return Status::OK();
  }
  return status.ok() ? DecodeCoverFile(text, covers)
                     : WithContext(status, EndStateOf(status), path);
}

Status WriteCovers(rocksdb::FileSystem* file_system, const std::string& dir,
                   CoverFile covers) {
  std::string text;
  Status status = EncodeCoverFile(covers, &text);
  if (!status.ok()) {
    covers.covers.clear();
    for (CoveredFamily& family : covers.families) {
      family.files.clear();
    }
    text.clear();
    status = EncodeCoverFile(covers, &text);
  }
  return status.ok()
             ? WriteDurably(file_system, dir + "/" + kCoverFileName, text)
             : status;
}

Status ReadSourceRecord(rocksdb::FileSystem* file_system,
                        const std::string& dir, const CoverFile& covers,
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
      (status.ok() && transfer_id != covers.transfer_id)) {
    record->clear();
    return Status::OK();
  }
  return status.ok() ? status : WithContext(status, EndStateOf(status), path);
}

Status WriteSourceRecord(rocksdb::FileSystem* file_system,
                         const std::string& dir, const SourcePlan& plan) {
  std::string text;
  EncodeSourceRecordFile(plan.opened.transfer_id, plan.source_record, &text);
  return WriteDurably(file_system, dir + "/" + kSourceRecordName, text);
}

void ThinBounds(std::vector<TargetBound>* bounds) {
  const auto bytes = [bounds] {
    size_t sum = 0;
    for (const TargetBound& bound : *bounds) {
      sum += EncodedBytes(bound);
    }
    return sum;
  };
  while (bounds->size() > kMaxTargetBounds || bytes() > kMaxBoundBytes) {
    for (size_t i = 0; 2 * i + 1 < bounds->size(); ++i) {
      (*bounds)[i] = std::move((*bounds)[2 * i + 1]);
    }
    bounds->resize(bounds->size() / 2);
  }
}

void SetOutermost(const Comparator* order,
                  const std::vector<LiveTable>& tables,
                  std::optional<std::string>* first,
                  std::optional<std::string>* last) {
  first->reset();
  last->reset();
  for (const LiveTable& table : tables) {
    if (!*first || order->Compare(table.smallest, **first) < 0) {
      *first = table.smallest;
    }
    if (!*last || order->Compare(table.largest, **last) > 0) {
      *last = table.largest;
    }
  }
}

Status JudgeCovers(const CoverFile& record, rocksdb::DB* db,
                   const std::vector<FamilyHandle>& families,
                   JudgedTarget* judged) {
  judged->record = record;
  judged->families.clear();
  const bool same_database = !record.target_database_id.empty() &&
                             record.target_database_id == DatabaseIdOf(db);
  for (Cover& cover : judged->record.covers) {
    cover.doubted = cover.doubted || !same_database;
  }
  for (const FamilyHandle& family : families) {
    JudgedFamily found{family.name, family.handle->GetComparator(), {}};
    const Status status = ListLiveTables(db, family.handle, &found.tables);
    if (!status.ok()) {
      return status;
    }
    found.tables.insert(found.tables.end(), family.unflushed.begin(),
                        family.unflushed.end());
    uint32_t index = 0;
    const CoveredFamily* known = FindFamily(record, family.name, &index);
    if (known != nullptr) {
      NamedTables now = NamesOf(found.tables);
      AddDifferences(known->files, std::move(now.named), &now.nameless);
      Doubt(found.order, std::move(now.nameless), index, &judged->record);
    }
    judged->families.push_back(std::move(found));
  }
  return Status::OK();
}

void DescribeTarget(const PullOptions& options, const JudgedTarget& judged,
                    TargetMemory* memory) {
  const CoverFile& record = judged.record;
  const bool is_known =
      !options.adopt || (!options.source_id.empty() &&
                         options.source_id == record.source_database_id);
  for (const JudgedFamily& family : judged.families) {
    const uint32_t index = static_cast<uint32_t>(memory->families.size());
    TargetFamily told;
    told.name = family.name;
    SetOutermost(family.order, family.tables, &told.first, &told.last);
    memory->families.push_back(std::move(told));
    AddBounds(family.tables, index, memory);
    uint32_t recorded = 0;
    if (is_known && FindFamily(record, family.name, &recorded) != nullptr) {
      for (const Cover& cover : record.covers) {
        if (cover.family == recorded && memory->covers.size() < kMaxRanges) {
          memory->covers.push_back(cover);
          memory->covers.back().family = index;
        }
      }
    }
  }
  ThinBounds(&memory->bounds);
  if (is_known) {
    memory->source_record = judged.source_record;
  }
}

Status RecordCovers(const PullOptions& options, const SourcePlan& plan,
                    rocksdb::DB* db, const std::vector<FamilyHandle>& families,
                    const JudgedTarget& judged, const JournalState* journal,
                    CoverFile* covers) {
  const CoverFile& before = judged.record;
  CoverFile made;
  made.transfer_id = plan.opened.transfer_id;
  made.source_database_id = SourceIdOf(options, plan);
  made.sequence_old = before.sequence_new;
  made.sequence_new = plan.opened.snapshot_sequence;
  made.covers = plan.covers;
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
  *covers = std::move(made);
  return status;
}

Status RecordRepair(const SourcePlan& plan, rocksdb::DB* db,
                    const std::vector<FamilyHandle>& families,
                    const JudgedTarget& judged, const JournalState* journal,
                    CoverFile* covers) {
  CoverFile made = judged.record;
  made.families.clear();
  made.covers.clear();
  const Status status =
      AddKept(db, families, judged, journal,
              [](const KeyInterval&, const Comparator*) { return true; },
              &made);
  std::vector<bool> as_before;
  for (const Range& range : plan.ranges) {
    as_before.push_back(range.need == RangeNeed::kUnchanged);
  }
  DoubtUnequal(plan, families, as_before, &made);
  AddOthers(judged.record, &made);
  *covers = std::move(made);
  return status;
}

Status RecordTables(bool alone, rocksdb::DB* db,
                    const std::vector<FamilyHandle>& families,
                    CoverFile* covers) {
  for (const FamilyHandle& family : families) {
    uint32_t index = 0;
    if (FindFamily(*covers, family.name, &index) == nullptr) {
      continue;
    }
    std::vector<LiveTable> tables;
    const Status status = ListLiveTables(db, family.handle, &tables);
    if (!status.ok()) {
      return status;
    }
    NamedTables now = NamesOf(tables);
    std::vector<CoveredTable>& recorded = covers->families[index].files;
    if (!alone) {
      AddDifferences(std::move(recorded), now.named, &now.nameless);
    }
    Doubt(family.handle->GetComparator(), std::move(now.nameless), index,
          covers);
    recorded = std::move(now.named);
  }
  return Status::OK();
}

void DoubtUnequal(const SourcePlan& plan,
                  const std::vector<FamilyHandle>& families,
                  const std::vector<bool>& equal, CoverFile* covers) {
  // By family; ranges are in key order.
  std::vector<std::vector<KeyInterval>> unequal(families.size());
  for (const Range& range : plan.ranges) {
    if (!equal[range.id]) {
      unequal[range.family].push_back(range.interval);
    }
  }
  for (Cover& cover : covers->covers) {
    if (cover.family >= families.size()) {
      continue;
    }
    const Comparator* const order =
        families[cover.family].handle->GetComparator();
    const std::vector<KeyInterval>& ranges = unequal[cover.family];
    const auto first = std::partition_point(
        ranges.begin(), ranges.end(), [&](const KeyInterval& range) {
          return range.end && cover.interval.begin &&
                 order->Compare(*range.end, *cover.interval.begin) <= 0;
        });
    cover.doubted = cover.doubted ||
                    (first != ranges.end() &&
                     !IsOutside(*first, cover.interval, order));
  }
}

}  // namespace sstferry
