// Searches a table for SingleDeletes. RocksDB's iterators do not return them.
#pragma once

#include <functional>
#include <string>

#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// Sets *found to true if the table has a SingleDelete; otherwise does not
// change *found. REQUIRES: the file is a block-based table.
//   kCorrupt, kSourceError  the file is damaged or cannot be read
//   kCancelled              cancelled() (may be null) returned true
[[nodiscard]] rocksdb::Status FindSingleDelete(
    rocksdb::FileSystem* file_system, const std::string& path,
    const std::function<bool()>& cancelled, bool* found);

}  // namespace sstferry
