// Appends to the MANIFEST of a database that no process has open.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sstferry {

// Appends an edit that sets the database's id to `database_id`. The MANIFEST
// has `file_bytes` bytes, all of them complete records.
void AppendDatabaseId(uint64_t file_bytes, const std::string& database_id,
                      std::string* out);

// Appends an edit that sets RocksDB's last assigned sequence number to
// `sequence`. REQUIRES: it is not lower than the number in the MANIFEST.
void AppendLastSequence(uint64_t file_bytes, uint64_t sequence,
                        std::string* out);

// Appends an edit that drops the column family. REQUIRES: `family_id` is not 0
// (the family `default`), which RocksDB does not drop.
void AppendDroppedFamily(uint64_t file_bytes, uint32_t family_id,
                         std::string* out);

// Appends an edit that removes these tables of the family, given by level and
// number. REQUIRES: the MANIFEST has them at these levels.
void AppendRemovedTables(
    uint64_t file_bytes, uint32_t family_id,
    const std::vector<std::pair<int, uint64_t>>& tables, std::string* out);

}  // namespace sstferry
