// Looks up keys that may have changed since a target's last refresh.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "format/types.h"
#include "pipeline/parts/interval_reader.h"
#include "pipeline/parts/merged_entries.h"
#include "pipeline/parts/table_file.h"
#include "pipeline/refresh/next_place.h"
#include "rocksdb/db.h"
#include "rocksdb/status.h"

namespace sstferry {

// All files of a family, each list sorted by smallest key. Both are empty if
// the files are unknown, or do not hold all entries (some are in memory only).
struct LookupFiles {
  std::vector<TableFile> added;  // since the last refresh
  std::vector<TableFile> kept;
};

// Reads the newest entries from files that are read before all others.
//
// Ownership: borrows files and family.
// Threads:   one.
class EntriesOnTop : public EntryReader {
 public:
  // Returns true if a read finds the entries of the added files first.
  static bool LieOnTop(const LookupFiles& files,
                       const rocksdb::Comparator* order,
                       const KeyInterval& interval);

  EntriesOnTop(const std::vector<TableFile>& files, TableReads reads);

  // Moves to the key. Returns false if none of the files has an entry for it.
  // REQUIRES: keys ascend.
  bool MoveTo(const rocksdb::Slice& key);
  bool is_deletion() const { return merged_.is_deletion(); }

  bool Valid() const override { return !failed_ && merged_.valid(); }
  void Next() override { failed_ = failed_ || !merged_.Next().ok(); }
  rocksdb::Slice key() const override { return merged_.key(); }
  rocksdb::Slice value() const override { return merged_.value(); }
  [[nodiscard]] rocksdb::Status status() const override {
    return rocksdb::Status::OK();  // on failure the caller asks RocksDB instead
  }
  bool is_entity() const override { return false; }
  rocksdb::Iterator* iterator() const override { return nullptr; }

 private:
  const rocksdb::Comparator* const order_;
  MergedEntries merged_;
  bool failed_ = false;
};

// Finds the newest entry of a key in the added files if these are read before
// all others, because most keys that may have changed have it there. Otherwise,
// and for entries of other than the simple kinds, asks RocksDB.
//
// Ownership: borrows all arguments except the interval.
// Threads:   one.
class KeyLookup {
 public:
  KeyLookup(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family,
            const KeyInterval& interval, const LookupFiles& files);

  // Sets *entry to a reader at the key's entry, valid until the next call;
  // null: the snapshot has no entry. The reader's key may have other bytes if
  // the family's comparator treats both as the same key. REQUIRES: keys ascend
  // inside the interval.
  //   kCorrupt, kSourceError  reading failed
  [[nodiscard]] rocksdb::Status Find(const rocksdb::Slice& key,
                                     EntryReader** entry);

  // Returns the number of keys for which RocksDB was asked.
  uint64_t asked() const { return asked_; }

 private:
  rocksdb::DB* const db_;
  rocksdb::ColumnFamilyHandle* const family_;
  const KeyInterval interval_;
  std::unique_ptr<EntriesOnTop> on_top_;   // null: RocksDB is always asked
  std::unique_ptr<IntervalReader> reader_;  // null: not asked yet
  std::unique_ptr<NextPlace> place_;
  uint64_t asked_ = 0;
};

}  // namespace sstferry
