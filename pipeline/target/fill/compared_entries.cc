#include "pipeline/target/fill/compared_entries.h"

#include <algorithm>
#include <set>

#include "pipeline/read/range_entries.h"

namespace sstferry {

using rocksdb::Status;

namespace {

// Of all lanes and sorted runs together; and of one.
constexpr uint64_t kReadaheadBudgetBytes = 16u << 20;
constexpr uint64_t kMinReadaheadBytes = 64u << 10;
constexpr uint64_t kMaxReadaheadBytes = 1u << 20;

bool HasMemtables(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family) {
  for (const std::string& property :
       {rocksdb::DB::Properties::kNumEntriesActiveMemTable,
        rocksdb::DB::Properties::kNumDeletesActiveMemTable,
        rocksdb::DB::Properties::kNumImmutableMemTable}) {
    uint64_t count = 0;
    if (!db->GetIntProperty(family, property, &count) || count != 0) {
      return true;
    }
  }
  return false;
}

}  // namespace

const ComparedEntries::Tables& ComparedEntries::TablesOf(
    rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family, bool is_alone) {
  std::lock_guard<std::mutex> lock(mu_);
  std::unique_ptr<Tables>& tables = tables_[family->GetID()];
  if (tables == nullptr) {
    tables = std::make_unique<Tables>();
    if (is_alone && !HasMemtables(db, family)) {
      tables->files = ListTableFiles(db, family);
    }
    std::set<uint64_t> runs;
    for (const TableFile& file : tables->files) {
      runs.insert(file.depth);
    }
    const uint64_t streams =
        std::max<uint64_t>(1, lanes_ * std::max<uint64_t>(1, runs.size()));
    tables->readahead_bytes = std::clamp(kReadaheadBudgetBytes / streams,
                                         kMinReadaheadBytes,
                                         kMaxReadaheadBytes);
  }
  return *tables;
}

Status ComparedEntries::Index(rocksdb::DB* db,
                              rocksdb::ColumnFamilyHandle* family,
                              bool is_alone, const KeyInterval& interval,
                              const std::function<bool()>& cancelled,
                              GroupIndex* index) {
  const Tables& tables = TablesOf(db, family, is_alone);
  RangeEntriesOptions options;
  options.readahead_bytes = tables.readahead_bytes;
  options.files = tables.files.empty() ? nullptr : &tables.files;
  options.cancelled = cancelled;
  RangeEntries reader(db, family, interval, options);
  reader.SeekToBegin();
  return IndexEntries(&reader, cancelled, index);
}

}  // namespace sstferry
