// Filters of tables that lie above the last level. Most keys that a reader asks
// for lie below them, so that each wrong answer of their filters costs a block
// read more: with 10 bits a key one of a hundred, for each level. These tables
// are small, and get more bits a key.
#pragma once

#include "rocksdb/options.h"

namespace sstferry {

// Gives *options a filter policy that builds tables which are not known to be
// in the last level with more bits a key. `family` has the policy to begin
// with. Leaves *options without a filter, and with one of the application's
// own, as they are in `family`.
void UseDeltaFilters(const rocksdb::ColumnFamilyOptions& family,
                     rocksdb::ColumnFamilyOptions* options);

}  // namespace sstferry
