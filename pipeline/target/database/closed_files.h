// What the files of a database directory tell before anything opens it.
#pragma once

#include <string>
#include <vector>

#include "pipeline/target/database/live_tables.h"
#include "rocksdb/db.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// OK when every file that the MANIFEST names lies in `dir` itself. OPTIONS do
// not say so: they never name db_paths.
//   kRefused  a file on another path, or missing: the message names it
[[nodiscard]] rocksdb::Status CheckFilesAreHere(
    rocksdb::FileSystem* file_system, const std::string& dir);

// Whether a WAL holds no entries: nothing, or records about the log itself.
[[nodiscard]] rocksdb::Status IsEmptyWal(rocksdb::FileSystem* file_system,
                                         const std::string& path,
                                         uint64_t number, bool* is_empty);

// Of a database that was opened to be read: sets `unflushed` of each family.
[[nodiscard]] rocksdb::Status ListUnflushed(
    rocksdb::FileSystem* file_system, rocksdb::DB* db,
    std::vector<FamilyHandle>* families);

}  // namespace sstferry
