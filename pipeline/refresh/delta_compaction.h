// Compacts the deltas that refreshes have ingested above the data: a bounded
// amount per refresh, so that readers search few levels, and old entries do not
// stay forever.
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
// First merges the files above the last level into one level, if they form more
// than two sorted runs, or two runs whose merge rewrites at most 12 % of the
// family. If it does not merge two runs, it moves files of level 0 to an unused
// level. Then merges a file of the last level with the files above it, if these
// have more than 15 % of its size or a range deletion. Begins with the largest
// share, and rewrites at most 8 % of the family. The limits of 12 % and 8 % are
// at least 4 MiB.
//   kCancelled  `stop` was set
[[nodiscard]] rocksdb::Status CompactDeltas(
    rocksdb::DB* db, const std::vector<FamilyHandle>& families,
    StopSignal* stop);

}  // namespace sstferry
