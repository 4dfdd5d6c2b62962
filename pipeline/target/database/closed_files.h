// Reads the files of a database directory without RocksDB: the MANIFEST and the
// WALs.
#pragma once

#include <string>
#include <vector>

#include "pipeline/target/database/live_tables.h"
#include "rocksdb/db.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// Checks that every file that the MANIFEST names lies in `dir` itself. The
// OPTIONS file does not tell it: it never names db_paths.
//   kRefused  a file is missing or on another path; the message names it
//   kCorrupt  the MANIFEST is damaged
[[nodiscard]] rocksdb::Status CheckFilesAreHere(
    rocksdb::FileSystem* file_system, const std::string& dir);

// Sets *is_empty if a WAL holds no entries: nothing, or only records about the
// log itself.
[[nodiscard]] rocksdb::Status IsEmptyWal(rocksdb::FileSystem* file_system,
                                         const std::string& path,
                                         uint64_t number, bool* is_empty);

// Sets `unflushed` of each family of a database that is open for reading only.
[[nodiscard]] rocksdb::Status ListUnflushed(
    rocksdb::FileSystem* file_system, rocksdb::DB* db,
    std::vector<FamilyHandle>* families);

}  // namespace sstferry
