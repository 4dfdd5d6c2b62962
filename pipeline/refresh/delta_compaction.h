// Compacts what refreshes laid above the data by deltas: a little each night,
// so that readers look into few levels, and old entries do not stay for ever.
#pragma once

#include <cstdint>
#include <vector>

#include "format/messages.h"
#include "pipeline/base/stop_signal.h"
#include "pipeline/pull/live_tables.h"
#include "rocksdb/db.h"
#include "rocksdb/status.h"

namespace sstferry {

// Compacts leveled families. First merges the files above the last level into
// one level, once they are more than two sorted runs; two runs, while they have
// no more than 8 % of the family (4 MiB of a small one). Otherwise files in
// level 0 get a level of their own beside another one. Then merges with the
// last level those of its files above which there is more than 15 % of their
// size or a file with range deletions, the fullest first, up to 8 % of the
// family.
//   kCancelled  `stop` came first
[[nodiscard]] rocksdb::Status CompactDeltas(
    rocksdb::DB* db, const std::vector<FamilyHandle>& families,
    StopSignal* stop);

}  // namespace sstferry
