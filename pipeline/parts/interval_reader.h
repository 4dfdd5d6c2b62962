// Reads every live entry of a key interval with RocksDB's iterator, for chunks,
// digests and comparisons. Ignores the family's prefix extractor, and verifies
// checksums. Does not return deletions. Only look-ups of single keys fill the
// block cache. After a read error, Valid() stays false, and status() keeps the
// error. This is also true for releases of RocksDB whose iterators lose errors
// (parts/range_deletions.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "format/digest.h"
#include "format/messages.h"
#include "pipeline/parts/entry_reader.h"
#include "pipeline/parts/range_deletions.h"
#include "rocksdb/db.h"

namespace sstferry {

// Iterates over the entries of one interval in key order.
//
// Ownership: borrows db and family; owns its iterator and a copy of the bounds.
// Threads:   one at a time.
class IntervalReader : public EntryReader {
 public:
  // If `readahead_bytes` is 0, RocksDB chooses the readahead. While the reader
  // skips many deleted entries, it calls `cancelled` (may be null) from time to
  // time.
  IntervalReader(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family,
                 const KeyInterval& interval, uint64_t readahead_bytes,
                 std::function<bool()> cancelled = nullptr);
  ~IntervalReader() override;
  IntervalReader(const IntervalReader&) = delete;
  IntervalReader& operator=(const IntervalReader&) = delete;

  // Move to the first entry, or to the first entry after `key`.
  void SeekToBegin();
  void SeekAfter(const rocksdb::Slice& key);
  // Moves to the first entry at or after `key`. REQUIRES: `key` is inside the
  // interval.
  void SeekFrom(const rocksdb::Slice& key);
  // Moves to the last entry.
  void SeekToLast();

  bool Valid() const override {
    return stopped_.ok() && iterator_->Valid();
  }
  void Next() override {
    iterator_->Next();
    SkipDeleted();
  }
  rocksdb::Slice key() const override { return iterator_->key(); }
  rocksdb::Slice value() const override {
    return deletions_ != nullptr ? deletions_->value(*iterator_)
                                 : iterator_->value();
  }
  // Returns OK if no error has occurred so far.
  [[nodiscard]] rocksdb::Status status() const override {
    return stopped_.ok() ? iterator_->status() : stopped_;
  }
  bool is_entity() const override { return IsEntity(columns()); }
  const rocksdb::WideColumns& columns() const override {
    return deletions_ != nullptr ? deletions_->columns(*iterator_)
                                 : iterator_->columns();
  }

 private:
  // Returns true if no error has occurred. After an error, the iterator must
  // not be moved, because a seek would clear its error.
  bool MaySeek() {
    stopped_ = status();
    return stopped_.ok();
  }
  void SkipDeleted(bool forward = true) {
    if (deletions_ != nullptr && deletions_->may_delete() && stopped_.ok()) {
      stopped_ = deletions_->Skip(forward, iterator_.get());
    }
  }

  const KeyInterval interval_;
  const rocksdb::Comparator* const comparator_;
  rocksdb::Slice lower_;
  rocksdb::Slice upper_;
  // Null if the iterator applies range deletions itself.
  std::unique_ptr<RangeDeletions> deletions_;
  std::unique_ptr<rocksdb::Iterator> iterator_;
  rocksdb::Status stopped_;
};

// Computes the content digest of an interval. Polls `cancelled` (may be null).
[[nodiscard]] rocksdb::Status DigestInterval(
    rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family,
    const KeyInterval& interval, uint64_t readahead_bytes,
    const std::function<bool()>& cancelled, DigestReply* reply);

// Reads one page of entries: their keys, and digests of their values. Stops at
// about `page_bytes` encoded bytes.
[[nodiscard]] rocksdb::Status ReadEntries(rocksdb::DB* db,
                                          rocksdb::ColumnFamilyHandle* family,
                                          const EntriesRequest& request,
                                          uint64_t readahead_bytes,
                                          size_t page_bytes,
                                          EntriesReply* reply);

}  // namespace sstferry
