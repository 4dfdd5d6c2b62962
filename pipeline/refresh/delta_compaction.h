// Compacts the deltas that refreshes have ingested above the data: a little per
// refresh, so that readers search few levels, and old entries do not stay
// forever.
#pragma once

#include <cstdint>
#include <vector>

#include "format/messages.h"
#include "pipeline/base/stop_signal.h"
#include "pipeline/pull/live_tables.h"
#include "rocksdb/db.h"
#include "rocksdb/status.h"

namespace sstferry {

// Compacts leveled families, in two steps.
//
// First merges the files above the last level into one level, if they are more
// than two sorted runs, or if they are two and the merge rewrites at most 12 %
// of the family. Otherwise moves files of level 0 to a level of their own
// beside another one. Then merges files of the last level with those above
// them, if these have more than 15 % of the file's size or a range deletion,
// the fullest first, up to 8 % of the family. In a small family both limits are
// 4 MiB.
//   kCancelled  `stop` was set
[[nodiscard]] rocksdb::Status CompactDeltas(
    rocksdb::DB* db, const std::vector<FamilyHandle>& families,
    StopSignal* stop);

}  // namespace sstferry
