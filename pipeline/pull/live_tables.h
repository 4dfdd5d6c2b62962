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

// One SST file of the database.
struct LiveTable {
  // RocksDB's unique id; nullopt if the file's properties contain no id, or if
  // the file was deleted while they were read.
  std::optional<Digest128> id;
  std::string name;      // "000012.sst"; does not change with the level
  std::string path;
  std::string smallest;  // user key, including range deletions
  std::string largest;   // user key, including range deletions
  int level = 0;
  uint64_t bytes = 0;
  uint64_t smallest_sequence = 0;
  uint64_t largest_sequence = 0;
  uint64_t range_deletions = 0;  // from the table's properties
  bool was_ingested = false;  // its properties are known and show this
  // True if the file may have a SingleDelete. False if its properties are known
  // and show no deletions, or show that the file was ingested.
  bool may_single_delete = true;
};

// A column family of an open database. Borrows the handle.
struct FamilyHandle {
  std::string name;
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  // True if memtables have entries from the WALs. Set only if the database is
  // open read-only.
  bool is_unflushed = false;
};

// Returns the handles of `families`. Family is FamilyHandle or IngestFamily.
template <typename Family>
std::vector<rocksdb::ColumnFamilyHandle*> HandlesOf(
    const std::vector<Family>& families) {
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  for (const Family& family : families) {
    handles.push_back(family.handle);
  }
  return handles;
}

// Lists the live tables of a family at one point in time. Opens tables that are
// not open, but reads none of their data blocks.
[[nodiscard]] rocksdb::Status ListLiveTables(
    rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family,
    std::vector<LiveTable>* tables);

// Returns RocksDB's identity of the database; empty if the database has no
// identity.
std::string DatabaseIdOf(rocksdb::DB* db);

// Returns the unique id of a chunk's file; nullopt if the chunk's record has no
// id.
std::optional<Digest128> TableIdOf(const JournalChunk& chunk);

}  // namespace sstferry
