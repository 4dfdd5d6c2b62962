// Applies range deletions to an iterator of RocksDB that ignores them.
//
// Before 8.7, RocksDB's iterator loses errors if it applies range deletions
// itself (kIteratorsLoseErrors). DB::Get() loses no errors, and neither does an
// iterator that ignores range deletions. Such an iterator returns every key,
// even a deleted one. So this class looks up each key that a range deletion may
// cover:
//
//   range deletion           [b ..... d)
//   iterator             a    b    c    d    e
//   look-up                   no   c2   d          b is deleted, c is c2
//
// The iterator misses no key that exists: the newest entry of such a key is
// newer than all range deletions that cover the key. The iterator may return a
// wrong value for merge operands, because a range deletion may delete some of
// the operands. The look-up returns the right value.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "format/types.h"
#include "pipeline/parts/table_file.h"
#include "rocksdb/comparator.h"
#include "rocksdb/db.h"
#include "rocksdb/iterator.h"
#include "rocksdb/options.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/wide_columns.h"

namespace sstferry {

// Keeps the range deletions of one interval for one iterator.
//
// Ownership: borrows the database and the family.
// Threads:   one.
// Memory:    at most 2 * kMostSpans pairs of keys, and one entry.
class RangeDeletions {
 public:
  // REQUIRES: the iterator does not exist yet. While deleted entries are
  // skipped, `cancelled` (may be null) is called from time to time.
  RangeDeletions(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family,
                 const KeyInterval& interval, std::function<bool()> cancelled);
  RangeDeletions(const RangeDeletions&) = delete;
  RangeDeletions& operator=(const RangeDeletions&) = delete;

  // Sets the options of the iterator. REQUIRES: this object exists as long as
  // the iterator.
  void SetUp(rocksdb::ReadOptions* options);

  // Returns true if the iterator may be at a deleted entry. If it returns
  // false, the caller need not call Skip().
  bool may_delete() const {
    return !is_listed_ || is_met_ || may_cover_all_ || !spans_.empty();
  }
  // Skips deleted entries: moves the iterator, forward or backward, to the
  // nearest entry that is not deleted. Does not move it if its entry is not
  // deleted. The caller must call this function after each move of the
  // iterator. Returns errors of reads without an end state, or:
  //   kCancelled  `cancelled` returned true
  //   kRefused    the database has a row_cache, so look-ups ignore range
  //               deletions
  [[nodiscard]] rocksdb::Status Skip(bool forward, rocksdb::Iterator* iterator);

  // Return the value or the columns of the iterator's entry, with range
  // deletions applied.
  rocksdb::Slice value(const rocksdb::Iterator& iterator) const;
  const rocksdb::WideColumns& columns(const rocksdb::Iterator& iterator) const {
    return found_ == Found::kColumns ? columns_.columns() : iterator.columns();
  }

 private:
  // A pair of keys, with one or more range deletions between them. Both keys
  // are inclusive.
  using Span = std::pair<std::string, std::string>;
  // Tells who has the current entry: the iterator, value_ or columns_.
  enum class Found { kInIterator, kValue, kColumns };

  // Maximum number of spans. If there are more, neighboring spans are joined.
  static constexpr size_t kMostSpans = 4096;

  bool MayCover(const rocksdb::Slice& key) const;
  [[nodiscard]] rocksdb::Status LookUp(const rocksdb::Iterator& iterator,
                                       bool* is_deleted);
  // Lists the range deletions of all tables that the iterator reads.
  [[nodiscard]] rocksdb::Status List(rocksdb::Iterator* iterator);
  [[nodiscard]] rocksdb::Status ReadTable(const TableFile& file);
  void Add(const rocksdb::Slice& first, const rocksdb::Slice& last);
  void Join();

  rocksdb::DB* const db_;
  rocksdb::ColumnFamilyHandle* const family_;
  const rocksdb::Comparator* const order_;
  const KeyInterval interval_;
  const std::function<bool()> cancelled_;
  const rocksdb::ReadOptions look_up_;
  const bool has_row_cache_;
  // True if a range deletion may cover any key, because its keys are not known.
  bool may_cover_all_;
  // True after the iterator has opened a table that may have range deletions.
  // The iterator opens a table before it returns a key in the table's key
  // range. The key range includes the keys of the table's range deletions.
  bool is_met_ = false;
  bool is_listed_ = false;
  // True if the family's tables have changed since the iterator was made. The
  // tables that the iterator reads can then no longer be listed.
  bool has_changed_ = false;
  std::vector<Span> spans_;  // after Join(): in key order, without overlaps
  Found found_ = Found::kInIterator;
  rocksdb::PinnableSlice value_;
  rocksdb::PinnableWideColumns columns_;
};

}  // namespace sstferry
