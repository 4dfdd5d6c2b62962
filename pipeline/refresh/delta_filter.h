// Filters for tables above the last level. Most keys that a reader asks for are
// in the last level, so each false positive of the filters above costs another
// block read: with 10 bits per key one in a hundred, per level. These tables
// are small, so their filters use more bits per key.
#pragma once

#include "rocksdb/options.h"

namespace sstferry {

// Gives *options a filter policy that uses more bits per key in tables that are
// not known to be in the last level. `family` has the original policy. Leaves
// *options unchanged if `family` has no filter, or a policy of the
// application's own.
void UseDeltaFilters(const rocksdb::ColumnFamilyOptions& family,
                     rocksdb::ColumnFamilyOptions* options);

}  // namespace sstferry
