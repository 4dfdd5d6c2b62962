#include "pipeline/refresh/compared_entries.h"

#include <algorithm>
#include <set>

#include "pipeline/parts/range_entries.h"

namespace sstferry {

using rocksdb::Status;

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
    tables->readahead_bytes = ReadaheadOf(lanes_, runs.size());
  }
  return *tables;
}

Status ComparedEntries::Index(rocksdb::DB* db,
                              rocksdb::ColumnFamilyHandle* family,
                              bool is_alone, const KeyInterval& interval,
                              const std::function<bool()>& cancelled,
                              EntryDigester* digester, EntrySums* sums,
                              GroupIndex* index,
                              std::optional<std::string>* rest) {
  const Tables& tables = TablesOf(db, family, is_alone);
  RangeEntriesOptions options;
  options.readahead_bytes = tables.readahead_bytes;
  options.files = tables.files.empty() ? nullptr : &tables.files;
  options.cancelled = cancelled;
  RangeEntries reader(db, family, interval, options);
  reader.SeekToBegin();
  const Status status =
      IndexFitting(&reader, digester, cancelled, sums, index);
  if (status.ok() && reader.Valid()) {
    *rest = reader.key().ToString();
  }
  return status;
}

}  // namespace sstferry
