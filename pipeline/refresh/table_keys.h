// Reads the keys of a table file with their types, which RocksDB's iterators do
// not show.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "rocksdb/file_system.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Calls visit() with user key and type of every entry except range deletions.
// Also returns errors of `visit`. REQUIRES: a block-based table.
//   kCorrupt, kSourceError  the file is damaged or cannot be read
//   kCancelled              cancelled() returned true
[[nodiscard]] rocksdb::Status ForEachTableKey(
    rocksdb::FileSystem* file_system, const std::string& path,
    const std::function<bool()>& cancelled,
    const std::function<rocksdb::Status(const rocksdb::Slice& key,
                                        uint8_t type)>& visit);

// Returns true if an entry of this type is a SingleDelete.
inline bool IsSingleDelete(uint8_t type) { return type == 0x07; }

// Sets *found if an entry is a SingleDelete; never clears it.
[[nodiscard]] rocksdb::Status FindSingleDelete(
    rocksdb::FileSystem* file_system, const std::string& path,
    const std::function<bool()>& cancelled, bool* found);

}  // namespace sstferry
