// Checks if the linked RocksDB can read the tables of a database, before
// RocksDB opens it: RocksDB reports this only as texts, and reports unknown
// kinds of blocks as damaged.
#pragma once

#include <string>

#include "format/release.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// Checks the tables in `dir` if `writer` is unknown or later than the linked
// RocksDB: earlier releases write only what the linked one reads. Tables that
// are removed meanwhile, and kinds that sstferry does not know, are left to
// RocksDB.
//   InvalidArgument (kIncompatible)  a table has a format_version, or marked
//     blocks, that the linked RocksDB does not read; the message names it
[[nodiscard]] rocksdb::Status CheckTablesReadable(
    rocksdb::FileSystem* file_system, const std::string& dir,
    const RocksDbRelease& writer);

}  // namespace sstferry
