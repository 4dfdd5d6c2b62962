#include "pipeline/parts/interval_reader.h"

#include <utility>

#include "format/coding.h"
#include "format/limits.h"
#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/comparator.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Maximum numbers of entries and bytes between two calls of `cancelled`.
constexpr uint64_t kReadsBetweenCancels = 4096;
constexpr uint64_t kCancelIntervalBytes = 16u << 20;
// Maximum number of value bytes that are read for one page of entries. A page
// with large values ends early, because reading a page cannot be cancelled.
constexpr uint64_t kMaxPageReadBytes = 256u << 20;

}  // namespace

IntervalReader::IntervalReader(rocksdb::DB* db,
                               rocksdb::ColumnFamilyHandle* family,
                               const KeyInterval& interval,
                               uint64_t readahead_bytes,
                               std::function<bool()> cancelled)
    : interval_(interval), comparator_(family->GetComparator()) {
  rocksdb::ReadOptions options;
  options.total_order_seek = true;
  options.verify_checksums = true;
  options.fill_cache = false;
  options.readahead_size = readahead_bytes;
  if (interval_.begin.has_value()) {
    lower_ = *interval_.begin;
    options.iterate_lower_bound = &lower_;
  }
  if (interval_.end.has_value()) {
    upper_ = *interval_.end;
    options.iterate_upper_bound = &upper_;
  }
  if constexpr (kIteratorsLoseErrors) {
    deletions_ = std::make_unique<RangeDeletions>(db, family, interval_,
                                                  std::move(cancelled));
    deletions_->SetUp(&options);
  }
  iterator_.reset(db->NewIterator(options, family));
}

IntervalReader::~IntervalReader() = default;

void IntervalReader::SeekToBegin() {
  if (!MaySeek()) {
    return;
  }
  if (interval_.begin.has_value()) {
    iterator_->Seek(*interval_.begin);
  } else {
    iterator_->SeekToFirst();
  }
  SkipDeleted();
}

void IntervalReader::SeekAfter(const Slice& key) {
  SeekFrom(key);
  if (Valid() && comparator_->Compare(iterator_->key(), key) == 0) {
    Next();
  }
}

void IntervalReader::SeekFrom(const Slice& key) {
  if (MaySeek()) {
    iterator_->Seek(key);
    SkipDeleted();
  }
}

void IntervalReader::SeekToLast() {
  if (MaySeek()) {
    iterator_->SeekToLast();
    SkipDeleted(/*forward=*/false);
  }
}

Status DigestInterval(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family,
                      const KeyInterval& interval, uint64_t readahead_bytes,
                      const std::function<bool()>& cancelled,
                      DigestReply* reply) {
  IntervalReader reader(db, family, interval, readahead_bytes, cancelled);
  ContentDigest digest;
  std::string scratch;
  uint64_t looked_at_bytes = 0;
  for (reader.SeekToBegin(); reader.Valid(); reader.Next()) {
    bool entity = false;
    const Slice value = reader.DigestValue(&scratch, &entity);
    digest.Add(reader.key(), value, entity);
    if (digest.entries() % kReadsBetweenCancels != 0 &&
        digest.key_value_bytes() - looked_at_bytes < kCancelIntervalBytes) {
      continue;
    }
    looked_at_bytes = digest.key_value_bytes();
    if (cancelled && cancelled()) {
      return MakeStatus(EndState::kCancelled, "digest: stopped on request");
    }
  }
  reply->entries = digest.entries();
  reply->key_value_bytes = digest.key_value_bytes();
  reply->content = digest.Finish();
  return reader.status();
}

Status ReadEntries(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family,
                   const EntriesRequest& request, uint64_t readahead_bytes,
                   size_t page_bytes, EntriesReply* reply) {
  IntervalReader reader(db, family, request.interval, readahead_bytes);
  if (request.after.has_value()) {
    reader.SeekAfter(*request.after);
  } else {
    reader.SeekToBegin();
  }
  reply->entries.clear();
  std::string scratch;
  size_t bytes = 0;
  uint64_t read_bytes = 0;
  while (reader.Valid() && bytes < page_bytes &&
         read_bytes < kMaxPageReadBytes) {
    const Slice value = reader.DigestValue(&scratch);
    if (reader.key().size() > kMaxKeyBytes) {
      return MakeStatus(EndState::kRefused,
                        "entries: expected keys of at most " +
                            std::to_string(kMaxKeyBytes) + " bytes, found " +
                            std::to_string(reader.key().size()));
    }
    EntryDigest entry;
    entry.key = reader.key().ToString();
    entry.value_bytes = value.size();
    entry.value = DigestOf(value);
    bytes += entry.key.size() + 32;
    read_bytes += value.size();
    reply->entries.push_back(std::move(entry));
    reader.Next();
  }
  reply->complete = !reader.Valid();
  return reader.status();
}

}  // namespace sstferry
