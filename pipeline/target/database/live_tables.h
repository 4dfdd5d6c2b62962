// The table files that hold a column family now.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/digest.h"
#include "format/record/journal.h"
#include "rocksdb/db.h"
#include "rocksdb/status.h"

namespace sstferry {

struct LiveTable {
  // RocksDB's unique id; none: its properties do not tell it, or the file went
  // while they were read.
  std::optional<Digest128> id;
  std::string name;      // "000012.sst"; a move to another level keeps it
  std::string smallest;  // user keys, those of tombstones included
  std::string largest;
  int level = 0;
  uint64_t bytes = 0;
  uint64_t smallest_sequence = 0;
  uint64_t largest_sequence = 0;
  uint64_t range_deletions = 0;
};

struct FamilyHandle {
  std::string name;
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  // What lies in WALs, as tables without name and id that a flush would make:
  // of a database that was opened to be read.
  std::vector<LiveTable> unflushed = {};
};

// Opens files that are not open, but reads no data block.
[[nodiscard]] rocksdb::Status ListLiveTables(
    rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family,
    std::vector<LiveTable>* tables);

// RocksDB's identity of the database; empty where it does not tell it.
std::string DatabaseIdOf(rocksdb::DB* db);

// The unique id of a chunk's file.
std::optional<Digest128> TableIdOf(const JournalChunk& chunk);

}  // namespace sstferry
