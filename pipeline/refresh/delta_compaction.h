// Compacts some of the deltas that refreshes have ingested above the older
// data. Without this, readers would have to search more and more levels, and
// overwritten entries would stay on the disk. Each refresh compacts a limited
// amount.
#pragma once

#include <cstdint>
#include <vector>

#include "format/messages.h"
#include "pipeline/base/stop_signal.h"
#include "pipeline/pull/live_tables.h"
#include "rocksdb/db.h"
#include "rocksdb/status.h"

namespace sstferry {

// Compacts families with leveled compaction, in two steps.
//
// The first step reduces the sorted runs above the last level. It merges all of
// them into one level if there are more than two runs. It also merges two runs
// if this rewrites at most 12 % of the family. If two runs stay, it moves files
// from level 0 to an unused level.
//
// The second step compacts a file of the last level together with the files
// above it. It does so if these files have more than 15 % of the lower file's
// bytes, or a range deletion. It begins with the largest share, and rewrites at
// most 8 % of the family. (In a small family, both limits are 4 MiB.)
//   kCancelled  `stop` was set
[[nodiscard]] rocksdb::Status CompactDeltas(
    rocksdb::DB* db, const std::vector<FamilyHandle>& families,
    StopSignal* stop);

}  // namespace sstferry
