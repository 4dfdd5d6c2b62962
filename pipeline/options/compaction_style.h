// Compaction styles of column families: their names, and which of them allow
// RocksDB to ingest over existing data.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "format/messages.h"
#include "rocksdb/options.h"
#include "rocksdb/status.h"

namespace sstferry {

// Returns "leveled", "universal", "FIFO" or "none".
const char* StyleName(rocksdb::CompactionStyle style);

// Returns the style in a column family's options; nullopt if the linked RocksDB
// does not know the style.
std::optional<rocksdb::CompactionStyle> StyleOf(
    const std::vector<NamedValue>& options);

// Returns kRefused if the linked RocksDB cannot safely ingest over existing
// data of `family`.
[[nodiscard]] rocksdb::Status CheckIngestsOver(
    const std::string& family, rocksdb::CompactionStyle style);

}  // namespace sstferry
