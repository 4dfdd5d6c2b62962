// Compacts the deltas that refreshes have ingested above the data, so that
// readers search few levels and old entries do not stay forever. Each refresh
// compacts a bounded amount.
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
// family. If two runs stay unmerged, moves files of level 0 to an unused level.
//
// Then merges files of the last level with the files above them, if the upper
// files have more than 15 % of the lower file's size, or a range deletion.
// Begins with the largest share, and rewrites at most 8 % of the family. The
// limits of 12 % and 8 % are at least 4 MiB.
//   kCancelled  `stop` was set
[[nodiscard]] rocksdb::Status CompactDeltas(
    rocksdb::DB* db, const std::vector<FamilyHandle>& families,
    StopSignal* stop);

}  // namespace sstferry
