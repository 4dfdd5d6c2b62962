// Compaction styles of column families: their names, and over which of them
// RocksDB can ingest.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "format/messages.h"
#include "rocksdb/options.h"
#include "rocksdb/status.h"

namespace sstferry {

// "leveled", "universal", "FIFO" or "none".
const char* StyleName(rocksdb::CompactionStyle style);

// Returns what the options of a column family say; empty: nothing that the
// linked RocksDB knows.
std::optional<rocksdb::CompactionStyle> StyleOf(
    const std::vector<NamedValue>& options);

// kRefused: the linked RocksDB cannot safely ingest over data of `family`.
[[nodiscard]] rocksdb::Status CheckIngestsOver(
    const std::string& family, rocksdb::CompactionStyle style);

}  // namespace sstferry
