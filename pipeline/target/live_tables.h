// The table files that hold a column family now.
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

struct FamilyHandle {
  std::string name;
  rocksdb::ColumnFamilyHandle* handle = nullptr;
};

struct LiveTable {
  // RocksDB's unique id; none: its properties do not tell it, or the file went
  // while they were read.
  std::optional<Digest128> id;
  std::string name;      // "000012.sst"; a move to another level keeps it
  std::string smallest;  // user keys, those of tombstones included
  std::string largest;
  int level = 0;
  uint64_t bytes = 0;
  uint64_t range_deletions = 0;
  bool external = false;  // as it was ingested
};

// Opens files that are not open, but reads no data block.
[[nodiscard]] rocksdb::Status ListLiveTables(
    rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family,
    std::vector<LiveTable>* tables);

// Without an id where RocksDB does not tell it.
JournalTargetSequence SequenceOf(rocksdb::DB* db);

// The unique id of a chunk's file.
std::optional<Digest128> TableIdOf(const JournalChunk& chunk);

}  // namespace sstferry
