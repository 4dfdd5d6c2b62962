// Chooses filters (such as Bloom filters) for tables above the last level. Most
// keys are in the last level, so a search in a higher level usually finds
// nothing. If the filter does not exclude the key, the search reads a block in
// vain; with 10 bits per key, one search in a hundred does so. Tables above the
// last level are small, so their filters can use more bits per key.
#pragma once

#include "rocksdb/options.h"

namespace sstferry {

// Sets a filter policy in *options: the policy of `family`, but with more bits
// per key for tables that may be above the last level. Uses the policy of
// `family` unchanged if RocksDB does not define it. Does nothing if `family`
// has no filter.
void UseDeltaFilters(const rocksdb::ColumnFamilyOptions& family,
                     rocksdb::ColumnFamilyOptions* options);

}  // namespace sstferry
