// Names of the compaction styles of column families, and the styles that allow
// RocksDB to ingest files over existing data.
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

// Checks that the linked RocksDB can safely ingest files over existing data of
// `family`. Returns kRefused if it cannot.
[[nodiscard]] rocksdb::Status CheckIngestsOver(
    const std::string& family, rocksdb::CompactionStyle style);

}  // namespace sstferry
