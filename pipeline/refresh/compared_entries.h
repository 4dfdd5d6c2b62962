// Reads the target's entries of a part, to compare them with the source's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "format/messages.h"
#include "pipeline/parts/table_file.h"
#include "pipeline/refresh/group_index.h"
#include "rocksdb/db.h"
#include "rocksdb/status.h"

namespace sstferry {

// Reads the entries of parts into indexes. Merges the tables itself if the
// tables have all entries and no other process writes to the database. Such a
// merge takes half of the CPU time of RocksDB's iterator.
//
// Ownership: borrows the database.
// Threads:   any; each part is read by one lane.
class ComparedEntries {
 public:
  // `lanes` is the number of threads that read at the same time.
  explicit ComparedEntries(uint32_t lanes) : lanes_(lanes) {}

  // Adds the interval's entries to the index until one does not fit, and adds
  // their digests to *sums. If an entry does not fit, sets *rest to the entry's
  // key. `is_alone` is true if no other process writes to the database. Calls
  // `cancelled` from time to time. Returns errors of RocksDB and of
  // IndexFitting().
  [[nodiscard]] rocksdb::Status Index(
      rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family, bool is_alone,
      const KeyInterval& interval, const std::function<bool()>& cancelled,
      EntryDigester* digester, EntrySums* sums, GroupIndex* index,
      std::optional<std::string>* rest);

 private:
  struct Tables {
    std::vector<TableFile> files;  // empty: RocksDB's iterator reads
    uint64_t readahead_bytes = 0;
  };
  const Tables& TablesOf(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family,
                         bool is_alone);

  const uint32_t lanes_;
  std::mutex mu_;
  std::map<uint32_t, std::unique_ptr<Tables>> tables_;  // by id; under mu_
};

}  // namespace sstferry
