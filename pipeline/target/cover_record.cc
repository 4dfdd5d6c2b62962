#include "pipeline/target/cover_record.h"

#include <algorithm>
#include <set>

#include "pipeline/key_interval.h"
#include "pipeline/target/durable.h"
#include "rocksdb/file_system.h"

namespace sstferry {
namespace {

using rocksdb::Comparator;
using rocksdb::Status;

// Of the bounds that a source is told.
constexpr size_t kMaxBoundBytes = 4u << 20;

struct DigestLess {
  bool operator()(const Digest128& a, const Digest128& b) const {
    return a.high != b.high ? a.high < b.high : a.low < b.low;
  }
};
using TableIds = std::set<Digest128, DigestLess>;

struct Span {
  std::string smallest;
  std::string largest;
};

TableIds IdsOf(const CoveredFamily& family) {
  TableIds ids;
  for (const CoveredTable& table : family.files) {
    ids.insert(table.id);
  }
  return ids;
}

// Tells whether an interval meets one of many spans of keys.
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

  bool Meet(const Span& other) const {
    const auto after = std::partition_point(
        spans_.begin(), spans_.end(), [&](const Span& span) {
          return order_->Compare(span.smallest, other.largest) <= 0;
        });
    const size_t count = static_cast<size_t>(after - spans_.begin());
    return count != 0 && order_->Compare(other.smallest,
                                         furthest_[count - 1]->largest) <= 0;
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

// Nothing of a database that is this one was written since.
bool IsUntouched(const CoverFile& record, rocksdb::DB* db) {
  return !record.mixed && !record.target_database_id.empty() &&
         SequenceOf(db) == JournalTargetSequence{record.target_database_id,
                                                 record.target_sequence};
}

// Writes that are in no file yet, or would be counted as ours.
bool HasMemtables(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family) {
  uint64_t active = 0;
  uint64_t waiting = 0;
  return !db->GetIntProperty(
             family, rocksdb::DB::Properties::kNumEntriesActiveMemTable,
             &active) ||
         !db->GetIntProperty(
             family, rocksdb::DB::Properties::kNumEntriesImmMemTables,
             &waiting) ||
         active + waiting != 0;
}

bool IsOutside(const KeyInterval& interval, const KeyInterval& selected,
               const Comparator* order) {
  return (interval.end && selected.begin &&
          order->Compare(*interval.end, *selected.begin) <= 0) ||
         (interval.begin && selected.end &&
          order->Compare(*interval.begin, *selected.end) >= 0);
}

// Where files lie that nobody remembers, and where files lay that are gone: a
// deletion leaves no other trace once it was compacted. While nothing was
// written only compactions did that, which leave files in place of others.
std::vector<Span> DoubtedSpans(const Comparator* order,
                               const CoveredFamily& family,
                               const std::vector<LiveTable>& tables,
                               bool untouched) {
  const TableIds known = IdsOf(family);
  TableIds live;
  std::vector<Span> doubted;
  std::vector<Span> unknown;
  for (const LiveTable& table : tables) {
    const bool is_known = table.id && known.count(*table.id) != 0;
    if (table.id) {
      live.insert(*table.id);
    }
    if (!is_known) {
      unknown.push_back({table.smallest, table.largest});
    }
    if (!is_known && !(untouched && table.id && !table.external)) {
      doubted.push_back(unknown.back());
    }
  }
  const Spans successors(order, std::move(unknown));
  for (const CoveredTable& table : family.files) {
    const Span span{table.smallest, table.largest};
    if (live.count(table.id) == 0 && !(untouched && successors.Meet(span))) {
      doubted.push_back(span);
    }
  }
  return doubted;
}

// Where files of the lowest level that has any end.
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

void AddFamily(const CoverFile& record, bool untouched,
               const FamilyHandle& family, const std::vector<LiveTable>& tables,
               TargetMemory* memory) {
  const Comparator* const order = family.handle->GetComparator();
  TargetFamily told;
  told.name = family.name;
  for (const LiveTable& table : tables) {
    if (!told.first || order->Compare(table.smallest, *told.first) < 0) {
      told.first = table.smallest;
    }
    if (!told.last || order->Compare(table.largest, *told.last) > 0) {
      told.last = table.largest;
    }
  }
  const uint32_t index = static_cast<uint32_t>(memory->families.size());
  memory->families.push_back(std::move(told));
  AddBounds(tables, index, memory);
  uint32_t recorded = 0;
  const CoveredFamily* known = FindFamily(record, family.name, &recorded);
  if (known == nullptr) {
    return;
  }
  const Spans doubted(order, DoubtedSpans(order, *known, tables, untouched));
  for (const Cover& cover : record.covers) {
    if (cover.family == recorded && memory->covers.size() < kMaxRanges) {
      memory->covers.push_back(cover);
      memory->covers.back().family = index;
      memory->covers.back().doubted = doubted.Meet(cover.interval);
    }
  }
}

// A file that a flush made while the transfer ran holds somebody else's writes.
bool MayBeOurs(const LiveTable& table, const KeyInterval& selected,
               const Comparator* order) {
  return (table.level != 0 || table.external) &&
         HoldsSpan(selected, order, table.smallest, table.largest);
}

Status TablesOf(rocksdb::DB* db, const FamilyHandle& family,
                const KeyInterval& selected, const CoveredFamily* before,
                std::vector<CoveredTable>* files) {
  std::vector<LiveTable> tables;
  const Status status = ListLiveTables(db, family.handle, &tables);
  if (!status.ok()) {
    return status;
  }
  const TableIds known = before != nullptr ? IdsOf(*before) : TableIds();
  const Comparator* const order = family.handle->GetComparator();
  files->clear();
  for (LiveTable& table : tables) {
    const bool is_ours = table.id && (known.count(*table.id) != 0 ||
                                      MayBeOurs(table, selected, order));
    // One whose keys are too long to write down is doubted next time.
    if (is_ours && table.smallest.size() <= kMaxKeyBytes &&
        table.largest.size() <= kMaxKeyBytes) {
      files->push_back({*table.id, std::move(table.smallest),
                        std::move(table.largest)});
    }
  }
  return Status::OK();
}

void TakeSequence(rocksdb::DB* db, const std::vector<FamilyHandle>& families,
                  CoverFile* covers) {
  const JournalTargetSequence now = SequenceOf(db);
  const bool trusted = std::none_of(
      families.begin(), families.end(), [db](const FamilyHandle& family) {
        return HasMemtables(db, family.handle);
      });
  covers->target_sequence = now.sequence;
  covers->target_database_id = trusted ? now.database_id : "";
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

Status JudgeCovers(const CoverFile& record, rocksdb::DB* db,
                   const std::vector<FamilyHandle>& families,
                   TargetMemory* memory) {
  const bool untouched = IsUntouched(record, db);
  for (const FamilyHandle& family : families) {
    std::vector<LiveTable> tables;
    const Status status = ListLiveTables(db, family.handle, &tables);
    if (!status.ok()) {
      return status;
    }
    AddFamily(record, untouched, family, tables, memory);
  }
  ThinBounds(&memory->bounds);
  return Status::OK();
}

Status RecordCovers(const PullOptions& options, const SourcePlan& plan,
                    rocksdb::DB* db, const std::vector<FamilyHandle>& families,
                    const CoverFile& before, CoverFile* covers) {
  CoverFile made;
  made.transfer_id = plan.opened.transfer_id;
  made.source_database_id = SourceIdOf(options, plan);
  made.sequence_old = before.sequence_new;
  made.sequence_new = plan.opened.snapshot_sequence;
  made.covers = plan.covers;
  TakeSequence(db, families, &made);
  const KeyInterval& selected = options.selection.interval;
  const bool same_source = before.source_database_id == made.source_database_id;
  // What lay outside of what was asked for is still what it was.
  const auto keep = [&](uint32_t old_index, uint32_t index,
                        const Comparator* order) {
    for (const Cover& cover : before.covers) {
      if (same_source && cover.family == old_index &&
          (order == nullptr || IsOutside(cover.interval, selected, order)) &&
          made.covers.size() < kMaxRanges) {
        made.covers.push_back(cover);
        made.covers.back().family = index;
      }
    }
  };
  for (const FamilyHandle& family : families) {
    uint32_t old_index = 0;
    const CoveredFamily* known =
        same_source ? FindFamily(before, family.name, &old_index) : nullptr;
    if (known != nullptr) {
      keep(old_index, static_cast<uint32_t>(made.families.size()),
           family.handle->GetComparator());
    }
    made.families.push_back({family.name, {}});
  }
  for (size_t i = 0; i < before.families.size() && same_source; ++i) {
    uint32_t taken = 0;
    if (FindFamily(made, before.families[i].name, &taken) == nullptr) {
      keep(static_cast<uint32_t>(i),
           static_cast<uint32_t>(made.families.size()), nullptr);
      made.families.push_back(before.families[i]);
    }
  }
  for (size_t i = 0; i < families.size(); ++i) {
    uint32_t old_index = 0;
    const Status status =
        TablesOf(db, families[i], selected,
                 FindFamily(before, families[i].name, &old_index),
                 &made.families[i].files);
    if (!status.ok()) {
      return status;
    }
  }
  *covers = std::move(made);
  return Status::OK();
}

Status RecordTables(const Selection& selection, rocksdb::DB* db,
                    const std::vector<FamilyHandle>& families,
                    CoverFile* covers) {
  for (const FamilyHandle& family : families) {
    uint32_t index = 0;
    if (FindFamily(*covers, family.name, &index) == nullptr) {
      continue;
    }
    std::vector<CoveredTable> files;
    const Status status =
        TablesOf(db, family, selection.interval, &covers->families[index],
                 &files);
    if (!status.ok()) {
      return status;
    }
    covers->families[index].files = std::move(files);
  }
  TakeSequence(db, families, covers);
  return Status::OK();
}

}  // namespace sstferry
