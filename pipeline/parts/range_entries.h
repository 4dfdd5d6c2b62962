// Reads the entries of a part for its chunks. Merges the tables itself if
// possible, because a merge needs less CPU time than RocksDB's iterator.
//
// A merge fails at an entry or a table of a kind that it does not support.
// RocksDB's iterator then continues after the last key of the merge. Any other
// error of a merge is returned.
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
  // All live files of the family, sorted by smallest keys. Set this only if the
  // files contain all entries of the family. If null, RocksDB's iterator reads
  // the entries, because memtables may have some of them.
  const std::vector<TableFile>* files = nullptr;
  std::function<bool()> cancelled;  // polled; may be null
};

// Returns the readahead in bytes of one sorted run, if each of `lanes` lanes
// merges `sorted_runs` runs. All runs of all lanes share 16 MiB. One run gets
// at least 64 KiB and at most 1 MiB.
uint64_t ReadaheadOf(uint64_t lanes, uint64_t sorted_runs);

// Reads the entries of one interval. Borrows its arguments, except the
// interval.
class RangeEntries : public EntryReader {
 public:
  RangeEntries(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family,
               const KeyInterval& interval, const RangeEntriesOptions& options);

  // Move to the first entry, or to the first entry after `key`. REQUIRES: the
  // call is the first call of this object, and `key` is inside the interval.
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

  // Returns true while a merge reads the entries. Returns false after RocksDB's
  // iterator has taken over.
  bool is_merging() const { return merged_ != nullptr; }

 private:
  // Starts after the key `after`, or at the first entry if `after` is null.
  void Start(const rocksdb::Slice* after);
  [[nodiscard]] rocksdb::Status Merge(const rocksdb::Slice* after);
  void Iterate(const rocksdb::Slice* after);
  // Ends a merge that failed with `status`. If the merge does not support an
  // entry or a table, RocksDB's iterator takes over after the last key of the
  // merge. If the merge has returned no key, the iterator starts after `after`.
  void GiveUp(const rocksdb::Status& status, const rocksdb::Slice* after);

  rocksdb::DB* const db_;
  rocksdb::ColumnFamilyHandle* const family_;
  const KeyInterval interval_;
  const RangeEntriesOptions options_;
  std::unique_ptr<MergedEntries> merged_;  // null if iterated_ is set
  std::unique_ptr<IntervalReader> iterated_;
  rocksdb::Status stopped_;  // error of the merge
};

}  // namespace sstferry
