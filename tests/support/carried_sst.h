// Table files of databases, carried as a transfer would carry them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rocksdb/env.h"
#include "rocksdb/options.h"
#include "rocksdb/status.h"
#include "rocksdb/table.h"

#include "format/sst/sst_tail.h"
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

// Rewrites the tail; OK only if every byte of the body was visited and sound.
rocksdb::Status CarryBytes(const std::string& file, SstTail* tail);
// Body and new tail.
std::string Carried(const std::string& file);

// Ingests the file into a new database of that shape, requires that it then
// holds `entries`, passes VerifyChecksum, survives a compaction and being
// opened again; returns the bytes of the database's file after the ingest.
std::string RequireIngests(const TableShape& shape, const std::string& file,
                           const KeyValues& entries);

// All that a database of that shape reads from the file: what RequireIngests
// should find. In the shape's order.
KeyValues InOrder(const TableShape& shape);

}  // namespace sstferry::test
