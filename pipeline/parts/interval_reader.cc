#include "pipeline/parts/interval_reader.h"

#include "format/coding.h"
#include "format/limits.h"
#include "rocksdb/comparator.h"
#include "rocksdb/wide_columns.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Numbers of entries and of bytes between two polls of `cancelled`.
constexpr uint64_t kReadsBetweenCancels = 4096;
constexpr uint64_t kCancelIntervalBytes = 16u << 20;
// Maximum number of value bytes read for one page of entries. The page then
// ends early, because reading a page cannot be cancelled.
constexpr uint64_t kMaxPageReadBytes = 256u << 20;

}  // namespace

IntervalReader::IntervalReader(rocksdb::DB* db,
                               rocksdb::ColumnFamilyHandle* family,
                               const KeyInterval& interval,
                               uint64_t readahead_bytes,
                               const rocksdb::Snapshot* snapshot)
    : interval_(interval), comparator_(family->GetComparator()) {
  rocksdb::ReadOptions options;
  options.total_order_seek = true;
  options.verify_checksums = true;
  options.fill_cache = false;
  options.readahead_size = readahead_bytes;
  options.snapshot = snapshot;
  if (interval_.begin.has_value()) {
    lower_ = *interval_.begin;
    options.iterate_lower_bound = &lower_;
  }
  if (interval_.end.has_value()) {
    upper_ = *interval_.end;
    options.iterate_upper_bound = &upper_;
  }
  iterator_.reset(db->NewIterator(options, family));
}

IntervalReader::~IntervalReader() = default;

void IntervalReader::SeekToBegin() {
  if (interval_.begin.has_value()) {
    iterator_->Seek(*interval_.begin);
  } else {
    iterator_->SeekToFirst();
  }
}

void IntervalReader::SeekAfter(const Slice& key) {
  iterator_->Seek(key);
  if (iterator_->Valid() && comparator_->Compare(iterator_->key(), key) == 0) {
    iterator_->Next();
  }
}

bool IntervalReader::is_entity() const {
  const rocksdb::WideColumns& columns = iterator_->columns();
  // The default column has an empty name. RocksDB returns a plain value as a
  // single column with an empty name. It returns an entity with only that
  // column in the same way, so the API does not distinguish them.
  return columns.size() != 1 || !columns[0].name().empty();
}

Status DigestInterval(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family,
                      const KeyInterval& interval, uint64_t readahead_bytes,
                      const std::function<bool()>& cancelled,
                      DigestReply* reply) {
  IntervalReader reader(db, family, interval, readahead_bytes);
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
