// Makes table files by letting a database write them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rocksdb/env.h"
#include "rocksdb/options.h"
#include "rocksdb/table.h"

#include "tests/support/sst_files.h"

namespace sstferry::test {

// A name, and the options that make a database write files of that shape.
struct TableShape {
  std::string name;
  rocksdb::Options options;
  rocksdb::BlockBasedTableOptions table;
  KeyValues entries;
  // Table options that not every RocksDB version knows: "name=value;...".
  std::string newer;

  rocksdb::Options ToOptions(rocksdb::Env* env) const;
};

// Returns a shape with small blocks and partitions, in bytewise order.
TableShape PlainShape(const std::string& name, size_t count = 400);

// Writes a new database with the shape's entries, all at sequence 0. Returns
// the bytes of its only file.
std::string WriteDbFile(const TableShape& shape);

}  // namespace sstferry::test
