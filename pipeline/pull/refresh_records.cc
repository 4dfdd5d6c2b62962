#include "pipeline/pull/refresh_records.h"

#include <algorithm>
#include <utility>

#include "format/limits.h"
#include "format/source_record.h"
#include "pipeline/base/key_interval.h"
#include "pipeline/disk/durable.h"

namespace sstferry {
namespace {

using rocksdb::Comparator;
using rocksdb::Status;

// Checks whether an interval overlaps one of many spans.
class Spans {
 public:
  Spans(const Comparator* order, std::vector<KeySpan> spans)
      : order_(order), spans_(std::move(spans)) {
    std::sort(spans_.begin(), spans_.end(),
              [order](const KeySpan& a, const KeySpan& b) {
                return order->Compare(a.smallest, b.smallest) < 0;
              });
    const KeySpan* furthest = nullptr;
    for (const KeySpan& span : spans_) {
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
        spans_.begin(), spans_.end(), [&](const KeySpan& span) {
          return EndsAfter(interval, order_, span.smallest);
        });
    const size_t count = static_cast<size_t>(after - spans_.begin());
    return count != 0 && BeginsAtOrBefore(interval, order_,
                                          furthest_[count - 1]->largest);
  }

 private:
  const Comparator* const order_;
  std::vector<KeySpan> spans_;  // by smallest key
  std::vector<const KeySpan*> furthest_;
};

bool HasName(const LiveTable& table) {
  return table.id && table.smallest.size() <= kMaxKeyBytes &&
         table.largest.size() <= kMaxKeyBytes;
}

}  // namespace

const RecordedFamily* FindRecordedFamily(const IntervalFile& record,
                                         const std::string& name,
                                         uint32_t* index) {
  for (size_t i = 0; i < record.families.size(); ++i) {
    if (record.families[i].name == name) {
      *index = static_cast<uint32_t>(i);
      return &record.families[i];
    }
  }
  return nullptr;
}

std::vector<RecordedTable> NamedTables(const std::vector<LiveTable>& tables) {
  std::vector<RecordedTable> named;
  for (const LiveTable& table : tables) {
    if (HasName(table)) {
      named.push_back({*table.id, table.smallest, table.largest, table.bytes,
                       table.smallest_sequence, table.largest_sequence,
                       table.entries, table.deletions, table.merge_operands,
                       table.range_deletions, table.may_single_delete});
    }
  }
  return named;
}

std::vector<KeySpan> NamelessSpans(const std::vector<LiveTable>& tables) {
  std::vector<KeySpan> spans;
  for (const LiveTable& table : tables) {
    if (!HasName(table)) {
      spans.push_back({table.smallest, table.largest});
    }
  }
  return spans;
}

void DoubtIntervals(const Comparator* order, std::vector<KeySpan> spans,
                    uint32_t family, IntervalFile* intervals) {
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

void TakeAllSearched(std::vector<LiveTable>* tables) {
  for (LiveTable& table : *tables) {
    table.may_single_delete = false;
  }
}

std::string SourceIdOf(const PullOptions& options, const Plan& plan) {
  return options.source_id.empty() ? plan.opened.source_database_id
                                   : options.source_id;
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

Status WriteSourceRecord(rocksdb::FileSystem* file_system,
                         const std::string& dir, const Plan& plan) {
  std::string text;
  EncodeSourceRecordFile(plan.opened.transfer_id, plan.source_record, &text);
  return WriteDurably(file_system, dir + "/" + kSourceRecordName, text);
}

Status RecordNew(const PullOptions& options, const Plan& plan, rocksdb::DB* db,
                 const std::vector<FamilyHandle>& families,
                 IntervalFile* intervals) {
  *intervals = IntervalFile();
  intervals->transfer_id = plan.opened.transfer_id;
  intervals->source_database_id = SourceIdOf(options, plan);
  intervals->sequence = plan.opened.snapshot_sequence;
  intervals->intervals = plan.intervals;
  intervals->target_database_id = DatabaseIdOf(db);
  for (const FamilyHandle& family : families) {
    intervals->families.push_back({family.name, {}});
  }
  return RecordTables(db, families, intervals);
}

Status RecordTables(rocksdb::DB* db, const std::vector<FamilyHandle>& families,
                    IntervalFile* intervals) {
  for (const FamilyHandle& family : families) {
    uint32_t index = 0;
    if (FindRecordedFamily(*intervals, family.name, &index) == nullptr) {
      continue;
    }
    std::vector<LiveTable> tables;
    RETURN_IF_ERROR(ListLiveTables(db, family.handle, &tables));
    TakeAllSearched(&tables);
    DoubtIntervals(family.handle->GetComparator(), NamelessSpans(tables), index,
                   intervals);
    intervals->families[index].files = NamedTables(tables);
  }
  return Status::OK();
}

}  // namespace sstferry
