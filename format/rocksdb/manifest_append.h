// Appends to the MANIFEST of a database that no process has open.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sstferry {

// Appends the bytes that follow a MANIFEST of `file_bytes` bytes, all of them
// whole records, so that RocksDB takes `database_id` for its id.
void AppendDatabaseId(uint64_t file_bytes, const std::string& database_id,
                      std::string* out);

// The same for an edit after which RocksDB takes `sequence` for the last
// sequence number that it has assigned. REQUIRES: it is not below the one that
// the MANIFEST has.
void AppendLastSequence(uint64_t file_bytes, uint64_t sequence,
                        std::string* out);

// The same for an edit after which the column family is dropped. REQUIRES: it is
// not 0, the family `default`, which RocksDB does not drop.
void AppendDroppedFamily(uint64_t file_bytes, uint32_t family_id,
                         std::string* out);

// The same for an edit after which these tables of the family, by level and
// number, are gone. REQUIRES: the MANIFEST has them there.
void AppendRemovedTables(
    uint64_t file_bytes, uint32_t family_id,
    const std::vector<std::pair<int, uint64_t>>& tables, std::string* out);

}  // namespace sstferry
