// Estimates how much of a database is obsolete, without reading its entries.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "format/rocksdb/manifest_state.h"
#include "pipeline/snapshot/options_text.h"

namespace sstferry {

// Returns true if no families were asked for, or this one was.
inline bool IsAmong(const std::vector<std::string>& families,
                    const std::string& name) {
  return families.empty() ||
         std::find(families.begin(), families.end(), name) != families.end();
}

// Returns what tables and blob files of `families` (empty: all) hold without
// obsolete data, from the MANIFEST, and from the properties of some tables in
// `directory`. An estimate: a table that cannot be read says nothing. Where
// nothing is known, all counts as live.
uint64_t EstimateChunkBytes(const std::string& directory,
                            const ManifestState& state,
                            const OptionsText& options,
                            const std::vector<std::string>& families);

// Returns the bytes of those tables whose keys a table of a lower level may
// have, too: of all but a largest set without common keys. 0 for an order that
// is not known here. As RocksDB estimates live data.
uint64_t OverlappedBytes(const ManifestFamily& family);

}  // namespace sstferry
