// Table files as a database writes them.
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
  // Options that not every version knows: "name=value;..." of the table's.
  std::string newer;

  rocksdb::Options ToOptions(rocksdb::Env* env) const;
};

// Small blocks and partitions, bytewise order, `count` entries.
TableShape PlainShape(const std::string& name, size_t count = 400);

// The only file of a new database that holds the shape's entries, all of them
// at sequence 0.
std::string WriteDbFile(const TableShape& shape);

}  // namespace sstferry::test
