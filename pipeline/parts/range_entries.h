// Reads the entries of a part for its chunks. Merges the tables itself if it
// can, because that needs less CPU time; otherwise lets RocksDB iterate.
//
// If a merge cannot read an entry or a table because of its kind, RocksDB's
// iterator continues after the last good key. Every other error of a merge is
// final.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "pipeline/parts/interval_reader.h"
#include "pipeline/parts/merged_entries.h"
#include "rocksdb/db.h"

namespace sstferry {

struct RangeEntriesOptions {
  uint64_t readahead_bytes = 0;
  // All live files of the family, sorted by smallest keys; set only if they
  // contain all entries of the family. Null: memtables may have some, so
  // RocksDB iterates.
  const std::vector<TableFile>* files = nullptr;
  std::function<bool()> cancelled;  // polled; may be null
};

// Returns the readahead in bytes of one sorted run in one lane, if each of
// `lanes` merges `sorted_runs` runs. All together get 16 MiB, but each gets at
// least 64 KiB and at most 1 MiB.
uint64_t ReadaheadOf(uint64_t lanes, uint64_t sorted_runs);

// Reads the entries of one interval. Borrows its arguments, except the
// interval.
class RangeEntries : public EntryReader {
 public:
  RangeEntries(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family,
               const KeyInterval& interval, const RangeEntriesOptions& options);

  // Move to the first entry, or to the first entry after `key`. Called once,
  // before any other function. REQUIRES: `key` is inside the interval.
  void SeekToBegin() { Start(nullptr); }
  void SeekAfter(const rocksdb::Slice& key) { Start(&key); }

  bool Valid() const override {
    return merged_ != nullptr ? merged_->valid()
                              : iterated_ != nullptr && iterated_->Valid();
  }
  void Next() override;
  rocksdb::Slice key() const override {
    return merged_ != nullptr ? merged_->key() : iterated_->key();
  }
  rocksdb::Slice value() const override {
    return merged_ != nullptr ? merged_->value() : iterated_->value();
  }
  [[nodiscard]] rocksdb::Status status() const override {
    return iterated_ != nullptr ? iterated_->status() : stopped_;
  }
  bool is_entity() const override {
    return iterated_ != nullptr && iterated_->is_entity();
  }
  const rocksdb::WideColumns& columns() const override {
    return iterated_->columns();
  }

  // Returns true as long as this object merges. Returns false once RocksDB
  // iterates, even if only from a later entry on.
  bool is_merging() const { return merged_ != nullptr; }

 private:
  // Null `after`: starts at the first entry.
  void Start(const rocksdb::Slice* after);
  [[nodiscard]] rocksdb::Status Merge(const rocksdb::Slice* after);
  void Iterate(const rocksdb::Slice* after);
  // Ends a failed merge. If it does not support something, RocksDB continues
  // after the last key that the merge handled or, if no key was handled, after
  // `after`.
  void GiveUp(const rocksdb::Status& status, const rocksdb::Slice* after);

  rocksdb::DB* const db_;
  rocksdb::ColumnFamilyHandle* const family_;
  const KeyInterval interval_;
  const RangeEntriesOptions options_;
  std::unique_ptr<MergedEntries> merged_;  // at most one of the two is set
  std::unique_ptr<IntervalReader> iterated_;
  rocksdb::Status stopped_;  // not OK: the merge failed or was cancelled
};

}  // namespace sstferry
