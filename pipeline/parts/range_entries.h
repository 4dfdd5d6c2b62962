// Reads the entries of a part for the builder of its chunks, by the cheaper of
// two ways: merges the tables itself, or lets RocksDB iterate.
//
// RocksDB decides in the end: whatever is not a plain put or deletion, and
// every error, makes RocksDB's iterator go on behind the last good key.
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
  // All live files of the family, sorted by smallest keys, if they hold all of
  // its entries. Null: the memtables hold some.
  const std::vector<TableFile>* files = nullptr;
  std::function<bool()> cancelled;  // polled; may be null
};

// Returns what each of `sorted_runs` of a family reads ahead in each of
// `lanes`. All together take 16 MiB, or 64 KiB each where these are more.
uint64_t ReadaheadOf(uint64_t lanes, uint64_t sorted_runs);

// Ownership: borrows what it is given, but for the interval.
class RangeEntries : public EntryReader {
 public:
  RangeEntries(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family,
               const KeyInterval& interval, const RangeEntriesOptions& options);

  // Moves to the first entry, or to the first one behind `key`. Once, before
  // anything else. REQUIRES: `key` is inside the interval.
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
  rocksdb::Iterator* iterator() const override { return iterated_->iterator(); }

  // False: RocksDB iterates, from the first entry or from a later one on.
  bool is_merging() const { return merged_ != nullptr; }

 private:
  // `after` null: from the first entry on.
  void Start(const rocksdb::Slice* after);
  [[nodiscard]] rocksdb::Status Merge(const rocksdb::Slice* after);
  void Iterate(const rocksdb::Slice* after);
  // Ends the merge, which failed. RocksDB goes on behind the last key that is
  // dealt with, else behind `after`.
  void GiveUp(const rocksdb::Status& status, const rocksdb::Slice* after);

  rocksdb::DB* const db_;
  rocksdb::ColumnFamilyHandle* const family_;
  const KeyInterval interval_;
  const RangeEntriesOptions options_;
  std::unique_ptr<MergedEntries> merged_;  // one of the two is there
  std::unique_ptr<IntervalReader> iterated_;
  rocksdb::Status stopped_;  // the merge was cancelled
};

}  // namespace sstferry
