// Tells if the linked RocksDB reads the tables of a database, before RocksDB is
// asked: its own answers are texts, and it calls blocks damaged that it
// does not know.
#pragma once

#include <string>

#include "format/release.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// Checks the tables in `dir`, if `writer` is not known or later than the linked
// RocksDB: no other release wrote what that does not read. Tables that vanish
// meanwhile, and kinds that sstferry does not know, are left to RocksDB.
//   InvalidArgument (kIncompatible)  a table has a format_version, or marked
//     blocks, that the linked RocksDB does not read; the message names it
[[nodiscard]] rocksdb::Status CheckTablesReadable(
    rocksdb::FileSystem* file_system, const std::string& dir,
    const RocksDbRelease& writer);

}  // namespace sstferry
