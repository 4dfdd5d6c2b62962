#include "pipeline/parts/range_deletions.h"

#include <algorithm>
#include <memory>

#include "format/end_state.h"
#include "format/rocksdb/sst_reader.h"
#include "pipeline/base/file_source.h"
#include "pipeline/base/key_interval.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/parts/entry_reader.h"
#include "pipeline/parts/read_failure.h"
#include "rocksdb/table_properties.h"

namespace sstferry {

using rocksdb::Iterator;
using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Number of look-ups between two polls of `cancelled`.
constexpr uint64_t kLookUpsBetweenCancels = 256;
constexpr char kVersionOfIterator[] = "rocksdb.iterator.super-version-number";

rocksdb::ReadOptions LookUpOptions() {
  rocksdb::ReadOptions options;
  options.total_order_seek = true;
  options.verify_checksums = true;
  // Fill the cache, because neighboring keys are in the same block.
  options.fill_cache = true;
  return options;
}

}  // namespace

RangeDeletions::RangeDeletions(rocksdb::DB* db,
                               rocksdb::ColumnFamilyHandle* family,
                               const KeyInterval& interval,
                               std::function<bool()> cancelled)
    : db_(db),
      family_(family),
      order_(family->GetComparator()),
      interval_(interval),
      cancelled_(std::move(cancelled)),
      look_up_(LookUpOptions()),
      has_row_cache_(db->GetDBOptions().row_cache != nullptr),
      may_cover_all_(HasMemtables(db, family)) {}

void RangeDeletions::SetUp(rocksdb::ReadOptions* options) {
  options->ignore_range_deletions = true;
  options->table_filter = [this](const rocksdb::TableProperties& table) {
    // A table without a session id may have range deletions, even if its count
    // is 0. RocksDB 5.0 to 5.14 did not count range deletions, and tables have
    // a session id since 6.10. List() does not use the count.
    is_met_ |= table.num_range_deletions != 0 || table.db_session_id.empty();
    return true;
  };
}

Status RangeDeletions::Skip(bool forward, Iterator* iterator) {
  found_ = Found::kInIterator;
  for (uint64_t looked_up = 0; iterator->Valid();) {
    if (!may_cover_all_ && (!is_listed_ || (is_met_ && has_changed_))) {
      RETURN_IF_ERROR(List(iterator));
    }
    bool is_deleted = false;
    if (MayCover(iterator->key())) {
      RETURN_IF_ERROR(LookUp(*iterator, &is_deleted));
    }
    if (!is_deleted) {
      break;
    }
    if (++looked_up % kLookUpsBetweenCancels == 0 && cancelled_ &&
        cancelled_()) {
      return MakeStatus(EndState::kCancelled, "read: stopped on request");
    }
    found_ = Found::kInIterator;
    if (forward) {
      iterator->Next();
    } else {
      iterator->Prev();
    }
  }
  return Status::OK();
}

bool RangeDeletions::MayCover(const Slice& key) const {
  if (may_cover_all_) {
    return true;
  }
  const auto span = std::lower_bound(
      spans_.begin(), spans_.end(), key,
      [this](const Span& one, const Slice& sought) {
        return order_->Compare(one.second, sought) < 0;
      });
  return span != spans_.end() && order_->Compare(span->first, key) <= 0;
}

Status RangeDeletions::LookUp(const Iterator& iterator, bool* is_deleted) {
  if (has_row_cache_ && (is_met_ || !spans_.empty())) {
    return MakeStatus(EndState::kRefused,
                      "range deletions in a database with a row_cache: "
                      "expected RocksDB 8.7 or later, found " +
                          RocksDbVersion() +
                          "; only a swap can refresh this database");
  }
  // Use GetEntity() only for entities: in 7.8, it resolves neither blobs nor
  // merge operands.
  const bool is_entity = IsEntity(iterator.columns());
  value_.Reset();
  columns_.Reset();
  const Status status =
      is_entity
          ? db_->GetEntity(look_up_, family_, iterator.key(), &columns_)
          : db_->Get(look_up_, family_, iterator.key(), &value_);
  found_ = is_entity ? Found::kColumns : Found::kValue;
  *is_deleted = status.IsNotFound();
  return *is_deleted ? Status::OK() : status;
}

Slice RangeDeletions::value(const Iterator& iterator) const {
  if (found_ != Found::kColumns) {
    return found_ == Found::kValue ? Slice(value_) : iterator.value();
  }
  const rocksdb::WideColumns& columns = columns_.columns();
  // The default column has an empty name, so it is the first of the sorted
  // columns.
  return !columns.empty() && columns[0].name().empty() ? columns[0].value()
                                                       : Slice();
}

Status RangeDeletions::List(Iterator* iterator) {
  is_listed_ = true;
  const std::vector<TableFile> files = ListTableFiles(db_, family_);
  // Do not use the list if the family's tables have changed since the iterator
  // was made: the iterator still reads the old tables.
  std::string read;
  uint64_t now = 0;
  if (!iterator->GetProperty(kVersionOfIterator, &read).ok() ||
      !db_->GetIntProperty(
          family_, rocksdb::DB::Properties::kCurrentSuperVersionNumber, &now) ||
      read != std::to_string(now)) {
    has_changed_ = true;
    may_cover_all_ = is_met_;
    return Status::OK();
  }
  for (const TableFile& file : files) {
    if (MeetsSpan(interval_, order_, file.smallest, file.largest)) {
      RETURN_IF_ERROR(ReadTable(file));
    }
  }
  Join();
  return Status::OK();
}

Status RangeDeletions::ReadTable(const TableFile& file) {
  std::unique_ptr<FileSource> source;
  SstReader table;
  Status status = FileSource::Open(db_->GetFileSystem(), file.path, &source);
  if (status.ok()) {
    status = table.Open(source.get());
  }
  if (status.ok()) {
    status = table.ForEachRangeDeletion(
        [this](const Slice& begin, const Slice& end) {
          // Skip a range deletion whose end is not after its begin. It deletes
          // nothing, and Join() could not sort it. An ingested table may have
          // one.
          const Slice first = UserKeyOf(begin);
          if (order_->Compare(first, end) < 0 &&
              MeetsSpan(interval_, order_, first, end)) {
            Add(first, end);
          }
          return Status::OK();
        });
  }
  if (status.IsNotSupported()) {
    Add(file.smallest, file.largest);  // not a block-based table
    return Status::OK();
  }
  return WithoutState(WithContext(status, EndStateOf(status), file.path));
}

void RangeDeletions::Add(const Slice& first, const Slice& last) {
  spans_.emplace_back(first.ToString(), last.ToString());
  if (spans_.size() == 2 * kMostSpans) {
    Join();
  }
}

void RangeDeletions::Join() {
  std::sort(spans_.begin(), spans_.end(), [this](const Span& a, const Span& b) {
    return order_->Compare(a.first, b.first) < 0;
  });
  // Join spans that overlap or touch. If too many spans are left, join each
  // pair of neighbors.
  for (const bool in_pairs : {false, true}) {
    if (in_pairs && spans_.size() <= kMostSpans) {
      break;
    }
    std::vector<Span> joined;
    for (size_t i = 0; i < spans_.size(); ++i) {
      Span& span = spans_[i];
      const bool joins =
          !joined.empty() &&
          ((in_pairs && i % 2 == 1) ||
           order_->Compare(span.first, joined.back().second) <= 0);
      if (!joins) {
        joined.push_back(std::move(span));
      } else if (order_->Compare(joined.back().second, span.second) < 0) {
        joined.back().second = std::move(span.second);
      }
    }
    spans_ = std::move(joined);
  }
}

}  // namespace sstferry
