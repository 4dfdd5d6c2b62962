// Filters for tables above the last level. Most keys that readers want are in
// the last level. So a false positive of a filter above it costs a useless
// block read. With 10 bits per key, that happens in one of a hundred reads per
// level. These tables are small, so their filters can use more bits per key.
#pragma once

#include "rocksdb/options.h"

namespace sstferry {

// Gives *options the filter policy of `family`, but with more bits per key in
// tables that are not known to be in the last level. A policy that is not
// RocksDB's is used as it is. Leaves *options unchanged if `family` has no
// filter.
void UseDeltaFilters(const rocksdb::ColumnFamilyOptions& family,
                     rocksdb::ColumnFamilyOptions* options);

}  // namespace sstferry
