// Encodes records that are appended to the MANIFEST of a database that no
// process has open. The MANIFEST has `file_bytes` bytes, all of them complete
// records.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sstferry {

// Appends to *out an edit that sets the database's id.
void AppendDatabaseId(uint64_t file_bytes, const std::string& database_id,
                      std::string* out);

// Appends to *out an edit that sets RocksDB's last assigned sequence number.
// REQUIRES: `sequence` is not lower than the number in the MANIFEST.
void AppendLastSequence(uint64_t file_bytes, uint64_t sequence,
                        std::string* out);

// Appends to *out an edit that drops a column family. REQUIRES: `family_id` is
// not 0 (the family `default`), which RocksDB does not drop.
void AppendDroppedFamily(uint64_t file_bytes, uint32_t family_id,
                         std::string* out);

// Appends to *out an edit that removes tables of a family. `tables` has the
// level and number of each table. REQUIRES: the MANIFEST has the tables at
// these levels.
void AppendRemovedTables(
    uint64_t file_bytes, uint32_t family_id,
    const std::vector<std::pair<int, uint64_t>>& tables, std::string* out);

}  // namespace sstferry
