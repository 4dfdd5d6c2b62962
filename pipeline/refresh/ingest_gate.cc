#include "pipeline/refresh/ingest_gate.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "format/end_state.h"

namespace sstferry {
namespace {

using rocksdb::DB;
using rocksdb::Status;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLookInterval{20};

uint64_t Number(DB* db, rocksdb::ColumnFamilyHandle* family,
                const std::string& property) {
  uint64_t value = 0;
  return db->GetIntProperty(family, property, &value) ? value : 0;
}

}  // namespace

uint64_t FilesInLevel0(DB* db, rocksdb::ColumnFamilyHandle* family) {
  std::string text;  // RocksDB has no integer property for this
  return db->GetProperty(family, DB::Properties::kNumFilesAtLevelPrefix + "0",
                         &text)
             ? strtoull(text.c_str(), nullptr, 10)
             : 0;
}

IngestGate::IngestGate(std::function<bool()> is_busy,
                       uint64_t min_bytes_per_sec, StopSignal* stop)
    : is_busy_(std::move(is_busy)),
      min_bytes_per_sec_(min_bytes_per_sec),
      stop_(stop) {}

Status IngestGate::Pass(uint64_t bytes) {
  if (min_bytes_per_sec_ == 0) {
    return Status::OK();
  }
  const steady_clock::time_point start = steady_clock::now();
  const microseconds limit(
      static_cast<int64_t>(static_cast<double>(bytes) * 1e6 /
                           static_cast<double>(min_bytes_per_sec_)));
  bool stopped = stop_->stopped();
  while (!stopped && steady_clock::now() - start < limit && is_busy_()) {
    stopped = stop_->WaitFor(kLookInterval);
  }
  return stopped ? MakeStatus(EndState::kCancelled, "stopped on request")
                 : Status::OK();
}

// Reports mainly small families. With level_compaction_dynamic_level_bytes, a
// small family uses no level between level 0 and the last level. RocksDB then
// ingests its deltas into level 0, and slows down writers until it has
// compacted them.
std::vector<std::string> CrowdedLevel0(
    rocksdb::DB* db, const std::vector<FamilyHandle>& families) {
  std::vector<std::string> notes;
  for (const FamilyHandle& family : families) {
    const rocksdb::Options options = db->GetOptions(family.handle);
    const uint64_t files = FilesInLevel0(db, family.handle);
    const int trigger = options.level0_slowdown_writes_trigger;
    if (!options.disable_auto_compactions &&
        options.compaction_style == rocksdb::kCompactionStyleLevel &&
        trigger > 0 && files >= static_cast<uint64_t>(trigger)) {
      notes.push_back("column family '" + family.name + "': " +
                      std::to_string(files) +
                      " files are in level 0, and RocksDB slows writers down "
                      "from " + std::to_string(trigger) +
                      " files on, until they are compacted");
    }
  }
  return notes;
}

bool IsBehind(DB* db, const std::vector<FamilyHandle>& families) {
  for (const FamilyHandle& family : families) {
    const rocksdb::Options options = db->GetOptions(family.handle);
    const uint64_t slow_files = static_cast<uint64_t>(
        std::max(1, options.level0_slowdown_writes_trigger));
    const uint64_t slow_bytes = options.soft_pending_compaction_bytes_limit;
    const bool compacts = !options.disable_auto_compactions;
    const bool behind =
        Number(db, family.handle, DB::Properties::kIsWriteStopped) != 0 ||
        Number(db, family.handle, DB::Properties::kActualDelayedWriteRate) !=
            0 ||
        (compacts && FilesInLevel0(db, family.handle) >= slow_files) ||
        (compacts && slow_bytes != 0 &&
         Number(db, family.handle,
                DB::Properties::kEstimatePendingCompactionBytes) >=
             slow_bytes / 4 * 3);
    if (behind) {
      return true;
    }
  }
  return false;
}

}  // namespace sstferry
