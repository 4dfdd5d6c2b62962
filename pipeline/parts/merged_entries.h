// Merges tables of a family: for each key of an interval its newest entry.
//
// This costs about half of the CPU time of RocksDB's iterator, because the
// entries of a snapshot are never in memtables, have no merge operands that
// must be resolved, and are read once, front to back. What is not that simple
// (a merge operand, a blob, a wide-column entity, a range deletion, a table of
// another kind) is left to RocksDB: see RangeEntries.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/parts/table_cursor.h"
#include "pipeline/parts/table_file.h"
#include "rocksdb/comparator.h"

namespace sstferry {

// Files of one level in the order of their keys, or one file of level 0; as a
// run, one file after the other is open.
class SortedRun {
 public:
  explicit SortedRun(const TableReads* reads) : reads_(reads) {}

  // REQUIRES: keys behind those of the files before.
  void Add(const TableFile* file) { files_.push_back(file); }

  // Moves to the first entry.
  [[nodiscard]] rocksdb::Status Open();
  bool valid() const { return table_ != nullptr && table_->valid(); }
  const TableCursor& entry() const { return *table_; }
  [[nodiscard]] rocksdb::Status Next();

 private:
  [[nodiscard]] rocksdb::Status OpenNext();

  const TableReads* const reads_;
  std::vector<const TableFile*> files_;
  size_t next_file_ = 0;
  std::unique_ptr<TableCursor> table_;
};

// Ownership: borrows the file system, the comparator and the files.
// Threads:   one.
// Errors:    NotSupported for anything that is left to RocksDB; else a table
//            that cannot be read. What was returned before is right.
class MergedEntries {
 public:
  // True if all files of the family that meet the interval can be merged, as
  // far as their metadata tell, and if this process may open one of each sorted
  // run.
  static bool CanMerge(const std::vector<TableFile>& files,
                       const rocksdb::Comparator* order,
                       const KeyInterval& interval);

  // Says whether keys whose newest entry is a deletion are returned, too.
  enum class Deletions { kSkip, kShow };

  // `files` are sorted by smallest keys. `cancelled` (may be null) is polled
  // where no entry is returned for long.
  MergedEntries(const std::vector<TableFile>& files, TableReads reads,
                std::function<bool()> cancelled,
                Deletions deletions = Deletions::kSkip);

  // Moves to the first entry.
  [[nodiscard]] rocksdb::Status Open();
  // Return the current entry, until the next call of Next().
  bool valid() const { return !heap_.empty(); }
  const rocksdb::Slice& key() const {
    return heap_.front()->entry().user_key();
  }
  const rocksdb::Slice& value() const { return heap_.front()->entry().value(); }
  bool is_deletion() const {
    return heap_.front()->entry().type() != kSstTypeValue;
  }
  [[nodiscard]] rocksdb::Status Next();
  // The last key that is dealt with: returned, or found to be deleted. Null:
  // none. After an error, RocksDB goes on behind it.
  const std::string* done() const { return any_done_ ? &done_ : nullptr; }

 private:
  int Compare(const rocksdb::Slice& a, const rocksdb::Slice& b) const {
    return is_bytewise_ ? a.compare(b) : reads_.order->Compare(a, b);
  }
  bool IsBefore(const SortedRun& a, const SortedRun& b) const;
  // Restores the order of the heap below `at`.
  void SiftDown(size_t at);
  // Moves the first run to its next entry.
  [[nodiscard]] rocksdb::Status Step();
  // Moves to the next entry to return, from the one at the front on.
  [[nodiscard]] rocksdb::Status FindVisible();

  const TableReads reads_;
  const bool is_bytewise_;
  const std::function<bool()> cancelled_;
  const Deletions deletions_;
  std::vector<std::unique_ptr<SortedRun>> runs_;
  std::vector<SortedRun*> heap_;  // the run with the next entry comes first
  std::string done_;
  bool any_done_ = false;
};

}  // namespace sstferry
