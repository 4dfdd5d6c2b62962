// Merges the tables of a family and returns the newest entry of each key in an
// interval.
//
// A merge needs about half of the CPU time of RocksDB's iterator, because it
// handles fewer cases: a snapshot has no entries in memtables, each table is
// read once from front to back, and only puts and deletions are merged.
// RocksDB's iterator reads everything else: merge operands, blobs, wide-column
// entities, range deletions, and tables of other formats (see RangeEntries).
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

// The files of one level in key order, or a single file of level 0. Opens only
// one file at a time.
class SortedRun {
 public:
  explicit SortedRun(const TableReads* reads) : reads_(reads) {}

  // Adds a file. REQUIRES: its keys are after those of all earlier files.
  void Add(const TableFile* file) { files_.push_back(file); }

  // Moves to the first entry.
  [[nodiscard]] rocksdb::Status Open();
  bool valid() const { return table_ != nullptr && table_->valid(); }
  const TableCursor& entry() const { return *table_; }
  [[nodiscard]] rocksdb::Status Next();

 private:
  [[nodiscard]] rocksdb::Status OpenNext();
  // Adds the path of the open table to an error.
  rocksdb::Status InTable(const rocksdb::Status& status) const;

  const TableReads* const reads_;
  std::vector<const TableFile*> files_;
  size_t next_file_ = 0;
  std::unique_ptr<TableCursor> table_;
};

// The entries of one interval, merged from several tables.
//
// Ownership: borrows the file system, the comparator and the files.
// Threads:   one.
// Errors:    NotSupported if RocksDB's iterator must read the rest; other
//            errors, with the table's path, if a table cannot be read. Entries
//            returned before an error are correct.
class MergedEntries {
 public:
  // Returns true if the metadata of the family's files in the interval allow a
  // merge, and if this process may open one file of each sorted run.
  static bool CanMerge(const std::vector<TableFile>& files,
                       const rocksdb::Comparator* order,
                       const KeyInterval& interval);

  // `files` are sorted by smallest keys. `cancelled` (may be null) is polled
  // while many entries are skipped.
  MergedEntries(const std::vector<TableFile>& files, TableReads reads,
                std::function<bool()> cancelled);

  // Moves to the first entry.
  [[nodiscard]] rocksdb::Status Open();
  // Return the current entry, which stays valid until the next call of Next().
  bool valid() const { return !heap_.empty(); }
  const rocksdb::Slice& key() const {
    return heap_.front()->entry().user_key();
  }
  const rocksdb::Slice& value() const { return heap_.front()->entry().value(); }
  [[nodiscard]] rocksdb::Status Next();
  // Returns the last key that this object returned or skipped as deleted; null:
  // none. After an error, RocksDB's iterator continues after this key.
  const std::string* done() const { return any_done_ ? &done_ : nullptr; }

 private:
  int Compare(const rocksdb::Slice& a, const rocksdb::Slice& b) const {
    return is_bytewise_ ? a.compare(b) : reads_.order->Compare(a, b);
  }
  bool IsBefore(const SortedRun& a, const SortedRun& b) const;
  // Restores the heap order below `at`.
  void SiftDown(size_t at);
  // Moves the front run to its next entry.
  [[nodiscard]] rocksdb::Status Step();
  // Moves to the first visible entry, which may be the current one at the
  // front.
  [[nodiscard]] rocksdb::Status FindVisible();

  const TableReads reads_;
  const bool is_bytewise_;
  const std::function<bool()> cancelled_;
  std::vector<std::unique_ptr<SortedRun>> runs_;
  // The run with the smallest entry is at the front.
  std::vector<SortedRun*> heap_;
  std::string done_;
  bool any_done_ = false;
};

}  // namespace sstferry
