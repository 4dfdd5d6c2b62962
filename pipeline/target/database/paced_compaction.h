// Compacts replacement intervals after a refresh: merges the replaced entries
// with the range deletions over them, which RocksDB would not do by itself, at
// a limited rate.
#pragma once

#include <cstdint>
#include <vector>

#include "format/message/messages.h"
#include "pipeline/base/stop_signal.h"
#include "pipeline/target/database/live_tables.h"
#include "rocksdb/db.h"
#include "rocksdb/status.h"

namespace sstferry {

// Compacts the key spans of all files that hold range deletions and lie inside
// `interval`, also of those that an earlier, interrupted call left. Reads
// `bytes_per_sec` of files on average: RocksDB reads up to 256 MiB at its own
// speed, then this pauses; 0: no pauses.
//   kCancelled  `stop` came first; it also ends a compaction that has begun
[[nodiscard]] rocksdb::Status CompactReplaced(
    rocksdb::DB* db, const std::vector<FamilyHandle>& families,
    const KeyInterval& interval, uint64_t bytes_per_sec, StopSignal* stop);

// Returns RocksDB's estimate of the bytes that compactions must rewrite.
uint64_t CompactionDebt(rocksdb::DB* db,
                        const std::vector<FamilyHandle>& families);

}  // namespace sstferry
