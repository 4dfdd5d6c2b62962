// Lists the table files (SST files) of a column family of an open database.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/digest.h"
#include "format/journal.h"
#include "rocksdb/db.h"
#include "rocksdb/status.h"

namespace sstferry {

// One SST file of the database; or a span of keys in its WALs that a flush
// would write into one.
struct LiveTable {
  // RocksDB's unique id; nullopt if the file's properties have none, or the
  // file was deleted while they were read.
  std::optional<Digest128> id;
  std::string name;      // "000012.sst"; does not change with the level
  std::string path;
  std::string smallest;  // user key, including range deletions
  std::string largest;   // user key, including range deletions
  int level = 0;
  uint64_t bytes = 0;
  uint64_t smallest_sequence = 0;
  uint64_t largest_sequence = 0;
  // From the table's properties; `entries` includes the other counts.
  uint64_t entries = 0;
  uint64_t deletions = 0;  // includes range deletions
  uint64_t merge_operands = 0;
  uint64_t range_deletions = 0;
  // This database wrote the file under its present name: it was not ingested.
  bool is_own = false;
  // has_single_deletes: an entry is a SingleDelete. may_single_delete: one may
  // be, because nobody has searched the file, and its properties, if known,
  // show deletions of keys and that it was not ingested.
  bool has_single_deletes = false;
  bool may_single_delete = true;
};

// A column family of an open database. Borrows the handle.
struct FamilyHandle {
  std::string name;
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  // Keys in the WALs, as the tables (without name and id) that a flush would
  // make. Set only if the database is open read-only.
  std::vector<LiveTable> unflushed = {};
  // The application has no compaction filter for the family, so compactions do
  // not change what a reader sees.
  bool keeps_entries = false;
};

// Returns the handles of families, which are FamilyHandle or IngestFamily.
template <typename Family>
std::vector<rocksdb::ColumnFamilyHandle*> HandlesOf(
    const std::vector<Family>& families) {
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  for (const Family& family : families) {
    handles.push_back(family.handle);
  }
  return handles;
}

// Lists the live tables of a family in one version of the database. Opens
// tables that are not open, but reads no data block.
[[nodiscard]] rocksdb::Status ListLiveTables(
    rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family,
    std::vector<LiveTable>* tables);

// Returns RocksDB's identity of the database; empty if it has none.
std::string DatabaseIdOf(rocksdb::DB* db);

// Returns the unique id of a chunk's file; nullopt if the chunk's record has
// none.
std::optional<Digest128> TableIdOf(const JournalChunk& chunk);

}  // namespace sstferry
