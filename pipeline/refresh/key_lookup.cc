#include "pipeline/refresh/key_lookup.h"

#include <algorithm>

#include "pipeline/base/key_interval.h"
#include "pipeline/parts/read_failure.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Bytes that each open file reads ahead. One part has a few MB of the new
// files.
constexpr uint64_t kReadaheadBytes = 256u << 10;

}  // namespace

bool EntriesOnTop::LieOnTop(const LookupFiles& files,
                            const rocksdb::Comparator* order,
                            const KeyInterval& interval) {
  const auto meets = [&](const TableFile& file) {
    return MeetsSpan(interval, order, file.smallest, file.largest);
  };
  uint64_t deepest = 0;
  for (const TableFile& file : files.added) {
    deepest = meets(file) ? std::max(deepest, file.depth) : deepest;
  }
  return !files.added.empty() &&
         std::none_of(files.kept.begin(), files.kept.end(),
                      [&](const TableFile& file) {
                        return meets(file) && file.depth <= deepest;
                      }) &&
         MergedEntries::CanMerge(files.added, order, interval);
}

EntriesOnTop::EntriesOnTop(const std::vector<TableFile>& files,
                           TableReads reads)
    : order_(reads.order),
      merged_(files, std::move(reads), nullptr,
              MergedEntries::Deletions::kShow) {
  failed_ = !merged_.Open().ok();
}

bool EntriesOnTop::MoveTo(const Slice& key) {
  while (Valid() && order_->Compare(merged_.key(), key) < 0) {
    Next();
  }
  // An application's comparator may treat different bytes as one key.
  return Valid() && order_->Compare(merged_.key(), key) == 0;
}

KeyLookup::KeyLookup(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family,
                     const KeyInterval& interval, const LookupFiles& files)
    : db_(db), family_(family), interval_(interval) {
  const rocksdb::Comparator* const order = family_->GetComparator();
  if (EntriesOnTop::LieOnTop(files, order, interval_)) {
    TableReads reads;
    reads.file_system = db_->GetFileSystem();
    reads.order = order;
    reads.interval = interval_;
    reads.readahead_bytes = kReadaheadBytes;
    on_top_ = std::make_unique<EntriesOnTop>(files.added, std::move(reads));
  }
}

Status KeyLookup::Find(const Slice& key, EntryReader** entry) {
  *entry = nullptr;
  if (on_top_ != nullptr && on_top_->MoveTo(key)) {
    *entry = on_top_->is_deletion() ? nullptr : on_top_.get();
    return Status::OK();
  }
  ++asked_;
  if (reader_ == nullptr) {
    // Reading ahead would read the data between the keys.
    reader_ = std::make_unique<IntervalReader>(db_, family_, interval_,
                                               /*readahead_bytes=*/0);
    place_ = std::make_unique<NextPlace>(family_->GetComparator(),
                                         reader_.get());
  }
  place_->MoveTo(key);
  if (reader_->Valid() &&
      family_->GetComparator()->Compare(reader_->key(), key) == 0) {
    *entry = reader_.get();
  }
  return ReadFailure(reader_->status(),
                     "read column family '" + family_->GetName() + "'");
}

}  // namespace sstferry
