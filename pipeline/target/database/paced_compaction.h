// After a refresh: merges what was replaced with what replaced it, which
// RocksDB would not do by itself, at a rate that leaves room for others.
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
// `interval`, whoever left them: one that was stopped is gone on with by the
// next. kCancelled when `stop` came first; a compaction under way is ended.
// bytes_per_sec: of the files read, on average: RocksDB reads up to 256 MiB at
// its own speed, then comes the pause; 0: no pauses.
[[nodiscard]] rocksdb::Status CompactReplaced(
    rocksdb::DB* db, const std::vector<FamilyHandle>& families,
    const KeyInterval& interval, uint64_t bytes_per_sec, StopSignal* stop);

// What RocksDB estimates that compactions have to rewrite.
uint64_t CompactionDebt(rocksdb::DB* db,
                        const std::vector<FamilyHandle>& families);

}  // namespace sstferry
