// Lets ingestion into a database that serves wait while the database is behind
// with its own work, but never for ever.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "pipeline/base/stop_signal.h"
#include "pipeline/target/database/live_tables.h"
#include "rocksdb/db.h"
#include "rocksdb/status.h"

namespace sstferry {

// Threads: Pass() from one at a time.
class IngestGate {
 public:
  // `is_busy` is asked again and again while it says yes. min_bytes_per_sec:
  // so fast ingestion goes on whatever it says; 0: nothing waits.
  IngestGate(std::function<bool()> is_busy, uint64_t min_bytes_per_sec,
             StopSignal* stop);

  // Waits until so many bytes may be ingested. kCancelled: stopped.
  [[nodiscard]] rocksdb::Status Pass(uint64_t bytes);
  uint64_t waited_micros() const { return waited_micros_; }

 private:
  const std::function<bool()> is_busy_;
  const uint64_t min_bytes_per_sec_;
  StopSignal* const stop_;
  std::atomic<uint64_t> waited_micros_{0};
};

uint64_t FilesInLevel0(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family);

// Whether writers of one of these families are slowed down or stopped, or will
// be soon: by files in level 0, or by bytes that wait for compaction.
bool IsBehind(rocksdb::DB* db, const std::vector<FamilyHandle>& families);

}  // namespace sstferry
