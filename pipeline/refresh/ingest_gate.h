// Slows down a refresh of a database that an application has open. The refresh
// waits while RocksDB's compactions lag behind. It still ingests at a minimum
// rate, which limits the total wait.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pipeline/base/stop_signal.h"
#include "pipeline/pull/live_tables.h"
#include "rocksdb/db.h"
#include "rocksdb/status.h"

namespace sstferry {

// Makes a refresh wait before it ingests chunks.
//
// Threads: one at a time.
class IngestGate {
 public:
  // Pass() waits while is_busy() returns true, but lets at least
  // `min_bytes_per_sec` bytes per second pass. If `min_bytes_per_sec` is 0,
  // Pass() never waits. Borrows `stop`.
  IngestGate(std::function<bool()> is_busy, uint64_t min_bytes_per_sec,
             StopSignal* stop);

  // Blocks until `bytes` may be ingested.
  //   kCancelled  `stop` was set
  [[nodiscard]] rocksdb::Status Pass(uint64_t bytes);

 private:
  const std::function<bool()> is_busy_;
  const uint64_t min_bytes_per_sec_;
  StopSignal* const stop_;
};

// Returns the number of files in level 0; 0 if RocksDB does not report the
// number.
uint64_t FilesInLevel0(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family);

// Returns a sentence for the operator about each family with so many files in
// level 0 that RocksDB slows down writers.
std::vector<std::string> CrowdedLevel0(
    rocksdb::DB* db, const std::vector<FamilyHandle>& families);

// Returns true if RocksDB delays or stops writers of one of these families, or
// is close to doing so. RocksDB delays writers if level 0 has too many files,
// or if too many bytes wait for a compaction.
bool IsBehind(rocksdb::DB* db, const std::vector<FamilyHandle>& families);

}  // namespace sstferry
