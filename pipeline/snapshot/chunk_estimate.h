// Estimates how many bytes of a database are obsolete (overwritten or deleted),
// without reading its entries.
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

// Estimates the size of the live data in the tables and blob files of
// `families` (empty: all families). Uses the MANIFEST and the properties of
// some tables in `directory`. Skips tables that cannot be read. If no table can
// be read, counts all bytes as live.
uint64_t EstimateChunkBytes(const std::string& directory,
                            const ManifestState& state,
                            const OptionsText& options,
                            const std::vector<std::string>& families);

// Returns the total size of the tables that overlap other tables. Chooses
// tables that do not overlap each other, from the bottom level up, and adds up
// the tables that were not chosen. RocksDB estimates live data in the same way.
// Returns 0 if the comparator is not RocksDB's bytewise or reverse bytewise
// comparator.
uint64_t OverlappedBytes(const ManifestFamily& family);

}  // namespace sstferry
