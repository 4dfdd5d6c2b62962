// Checks, before RocksDB opens a database, if the linked RocksDB can read the
// tables. RocksDB itself reports this only as text, and reports unknown kinds
// of blocks as damaged.
#pragma once

#include <string>

#include "format/release.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// Checks the tables in `dir` if `writer` is unknown or newer than the linked
// RocksDB; the linked release can read tables of earlier releases. Ignores
// tables that are removed meanwhile and kinds of tables that sstferry does not
// know.
//   InvalidArgument (kIncompatible)  a table has a format_version, or marked
//     blocks, that the linked RocksDB cannot read; the message names it
[[nodiscard]] rocksdb::Status CheckTablesReadable(
    rocksdb::FileSystem* file_system, const std::string& dir,
    const RocksDbRelease& writer);

}  // namespace sstferry
