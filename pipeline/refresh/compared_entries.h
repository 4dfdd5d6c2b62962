// Reads the target's entries for a comparison.
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

// Reads parts as the source does. If the tables hold all entries and no other
// process writes, merges the tables itself, which takes half the CPU time of
// RocksDB's iterator.
//
// Ownership: borrows the database.
// Threads:   any; one lane per part.
class ComparedEntries {
 public:
  // `lanes`: number of concurrent readers.
  explicit ComparedEntries(uint32_t lanes) : lanes_(lanes) {}

  // Fills the index with the interval's entries while they fit, and adds their
  // digests to *sums. Sets *rest to the key of the first entry that does not
  // fit, if any. `is_alone`: no other process writes to the database. Polls
  // `cancelled`. Returns errors of RocksDB and of IndexFitting().
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
