// Appends to a MANIFEST what a clone changes in it.
#pragma once

#include <cstdint>
#include <string>

namespace sstferry {

// Appends the bytes that follow a MANIFEST of `file_bytes` bytes, all of them
// whole records, so that RocksDB takes `database_id` for its id.
void AppendDatabaseId(uint64_t file_bytes, const std::string& database_id,
                      std::string* out);

}  // namespace sstferry
