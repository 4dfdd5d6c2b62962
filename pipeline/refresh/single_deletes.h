// Searches a table file for SingleDeletes, which RocksDB's iterators do not
// show.
#pragma once

#include <functional>
#include <string>

#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// Sets *found if an entry is a SingleDelete; never clears it. REQUIRES: a
// block-based table.
//   kCorrupt, kSourceError  the file is damaged or cannot be read
//   kCancelled              cancelled() (may be null) returned true
[[nodiscard]] rocksdb::Status FindSingleDelete(
    rocksdb::FileSystem* file_system, const std::string& path,
    const std::function<bool()>& cancelled, bool* found);

}  // namespace sstferry
