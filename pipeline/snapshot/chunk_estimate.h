// Estimates how much of a database is obsolete, without reading its entries.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "format/rocksdb/manifest_state.h"
#include "pipeline/options/options_text.h"

namespace sstferry {

// Returns true if `families` is empty (all families) or contains `name`.
inline bool IsAmong(const std::vector<std::string>& families,
                    const std::string& name) {
  return families.empty() ||
         std::find(families.begin(), families.end(), name) != families.end();
}

// Estimates the size of the tables and blob files of `families` (empty: all)
// without obsolete data. Uses the MANIFEST and the properties of some tables in
// `directory`. Skips unreadable tables. If no table can be read, all bytes
// count as live.
uint64_t EstimateChunkBytes(const std::string& directory,
                            const ManifestState& state,
                            const OptionsText& options,
                            const std::vector<std::string>& families);

// Returns the bytes of tables that overlap other tables: all tables except a
// set of tables without overlaps, chosen from the bottom level up. Returns 0 if
// the comparator is not bytewise or reverse bytewise. RocksDB estimates live
// data in the same way.
uint64_t OverlappedBytes(const ManifestFamily& family);

}  // namespace sstferry
