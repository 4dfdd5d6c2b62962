// One table file (SST file) of a column family, as those who read it need it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rocksdb/db.h"

namespace sstferry {

struct TableFile {
  std::string path;
  std::string smallest;  // user keys, including range deletions
  std::string largest;
  // Read order. Reads find the entries of the file with the smaller depth
  // first: it is in a higher level, or is newer in level 0.
  uint64_t depth = 0;
  uint64_t smallest_sequence = 0;
  uint64_t largest_sequence = 0;
  bool has_blobs = false;
};

// Describes a live file. `place` is its place among those of its level, which
// RocksDB lists newest first in level 0.
TableFile DescribeTable(const rocksdb::SstFileMetaData& metadata, int level,
                        size_t place);

// Lists the live files of a family of an open database, sorted by their
// smallest keys. Opens no file.
std::vector<TableFile> ListTableFiles(rocksdb::DB* db,
                                      rocksdb::ColumnFamilyHandle* family);

}  // namespace sstferry
