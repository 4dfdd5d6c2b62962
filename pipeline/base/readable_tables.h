// Checks if the linked RocksDB can read a database's tables, before RocksDB
// opens the database. RocksDB itself would report a table that is too new only
// in the text of an error, or as damage.
#pragma once

#include <string>

#include "format/release.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// Checks that the linked RocksDB can read all tables in `dir`. `writer` is the
// release that wrote the tables. Returns OK without a look at the tables if
// `writer` is known and not newer than the linked release. Ignores a table that
// another process removes meanwhile, and a kind of table that sstferry does not
// know.
//   InvalidArgument (kIncompatible)  a table has a format_version, marked
//     blocks or embedded blobs that the linked RocksDB cannot read; the message
//     names the table
[[nodiscard]] rocksdb::Status CheckTablesReadable(
    rocksdb::FileSystem* file_system, const std::string& dir,
    const RocksDbRelease& writer);

}  // namespace sstferry
