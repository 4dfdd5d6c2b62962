// Applies range deletions to an iterator of RocksDB that ignores them.
//
// Before 8.7, an iterator that applies range deletions itself loses errors
// (kIteratorsLoseErrors): if it cannot read the start of a level's next file,
// or an entry that a range deletion covers, it continues without the rest of
// the level, and its status stays OK. DB::Get(), and an iterator that ignores
// range deletions, lose no errors. So this class uses such an iterator, and
// looks up each key that a range deletion may cover:
//
//   range deletion           [b ..... d)
//   iterator             a    b    c    d    e
//   look-up                   no   c2   d          b is deleted, c is c2
//
// The iterator returns every key that is not deleted: such a key's newest entry
// is above all range deletions that cover the key. Only the values of merge
// operands differ, because a range deletion may cover some of the operands.
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

// The range deletions of one interval, for one iterator.
//
// Ownership: borrows the database and the family.
// Threads:   one.
// Memory:    twice kMostSpans pairs of keys, and an entry.
class RangeDeletions {
 public:
  // Call before the iterator is made. `cancelled` (may be null) is polled while
  // deleted entries are skipped.
  RangeDeletions(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family,
                 const KeyInterval& interval, std::function<bool()> cancelled);
  RangeDeletions(const RangeDeletions&) = delete;
  RangeDeletions& operator=(const RangeDeletions&) = delete;

  // Sets the options of the iterator, which must not outlive this object.
  void SetUp(rocksdb::ReadOptions* options);

  // Returns false while no entry needs Skip().
  bool may_delete() const {
    return !is_listed_ || is_met_ || may_cover_all_ || !spans_.empty();
  }
  // Must be called after each move of the iterator. If the current entry is
  // deleted, moves on, forward or backward, to the next entry that is not.
  //   kCancelled  `cancelled` returned true
  //   others      errors of reading a table or of a look-up, without an end
  //               state; kRefused for a database with a row_cache, whose
  //               look-ups ignore range deletions
  [[nodiscard]] rocksdb::Status Skip(bool forward, rocksdb::Iterator* iterator);

  // Return the iterator's entry as it is visible.
  rocksdb::Slice value(const rocksdb::Iterator& iterator) const;
  const rocksdb::WideColumns& columns(const rocksdb::Iterator& iterator) const {
    return found_ == Found::kColumns ? columns_.columns() : iterator.columns();
  }

 private:
  // A span that contains range deletions: a key at or before the first one, and
  // a key at or after the end of the last one.
  using Span = std::pair<std::string, std::string>;
  // Where the current entry is.
  enum class Found { kInIterator, kValue, kColumns };

  // Maximum number of spans. If there are more, neighbors are joined.
  static constexpr size_t kMostSpans = 4096;

  bool MayCover(const rocksdb::Slice& key) const;
  [[nodiscard]] rocksdb::Status LookUp(const rocksdb::Iterator& iterator,
                                       bool* is_deleted);
  // Lists the range deletions of the tables that the iterator reads.
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
  // True: it is not known which keys range deletions cover.
  bool may_cover_all_;
  // True once the iterator has opened a table that may have range deletions. It
  // opens a table before it returns a key between the table's bounds, and these
  // bounds include the table's range deletions.
  bool is_met_ = false;
  bool is_listed_ = false;
  // True if the tables have changed since the iterator was made. The tables
  // that the iterator reads could then not be listed.
  bool has_changed_ = false;
  std::vector<Span> spans_;  // after Join(): in key order, without overlaps
  Found found_ = Found::kInIterator;
  rocksdb::PinnableSlice value_;
  rocksdb::PinnableWideColumns columns_;
};

}  // namespace sstferry
