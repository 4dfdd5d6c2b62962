// Defines the data that all lanes of one pull share: what they receive, which
// objects they use, and their results.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "format/messages.h"
#include "pipeline/base/stop_signal.h"
#include "pipeline/disk/access.h"
#include "pipeline/disk/space_gate.h"
#include "pipeline/pull/chunk_store.h"
#include "pipeline/pull/clone_layout.h"
#include "pipeline/pull/lost_source.h"
#include "pipeline/pull/part_scheduler.h"
#include "pipeline/pull/pull_counters.h"
#include "pipeline/pull/stall_guard.h"
#include "pipeline/wire/token_bucket.h"
#include "rocksdb/comparator.h"
#include "rocksdb/file_system.h"
#include "sstferry/options.h"

namespace sstferry {

class PartComparer;

// Properties that the chunks of a column family must have.
struct PullFamily {
  const rocksdb::Comparator* comparator = nullptr;
  uint32_t format_version = 0;
};

// Results of the lanes. Threads: any, under mu.
struct LaneResults : LaneCounts {
  mutable std::mutex mu;
  std::vector<Totals> family_totals;
  std::vector<ReceivedPart> ended;      // complete parts
};

// The data of all lanes of a pull. Borrows everything that it points to.
// Constant while lanes run, except the results, the counters, the pace, the
// scheduler and the store.
struct LaneShared : LaneResults {
  // --- what to receive -------------------------------------------------------
  const std::vector<Part>* parts = nullptr;
  // Indexed by part id. Only the lane that has a part changes its entry.
  std::vector<PartStart> starts;
  std::vector<PullFamily> families;
  TransferId transfer_id{};
  uint64_t chunk_bytes = 0;
  // Paths and offsets of a clone's units; null if the pull is not a clone.
  CloneLayout* clone = nullptr;
  std::string staging_dir;
  bool sync_chunks = true;
  Access file_access;  // for complete chunks
  // Time without progress after which a lost lane is not retried any more. 0: a
  // lost lane is never retried.
  std::chrono::milliseconds retry_for{0};
  // Time limit for one chunk on one connection: a fixed time, plus a time for
  // each MiB. When it has passed, the lane tries another connection.
  std::chrono::milliseconds chunk_time{120'000};
  std::chrono::milliseconds chunk_time_per_mib{16'000};

  // --- what to use -----------------------------------------------------------
  // Compares parts with the entries of this side's database. Null unless the
  // pull is a refresh in place.
  PartComparer* comparer = nullptr;
  // Opens a lane: *channel stays valid until the next call for that lane.
  std::function<rocksdb::Status(uint32_t lane, Channel** channel)> open_lane;
  rocksdb::FileSystem* file_system = nullptr;
  TokenBucket pace{0};  // limits SST bytes written to staging by all lanes
  SpaceGate* space = nullptr;  // null: no space is kept free
  PartScheduler* scheduler = nullptr;
  ChunkStore* store = nullptr;  // null: no store is open
  const StallGuard* guard = nullptr;
  StopSignal* stop = nullptr;  // null: nothing ends waits between tries
  LogFunction log;
  LostSource* lost_source = nullptr;  // null: losses are not logged

  // --- counters --------------------------------------------------------------
  std::atomic<uint32_t> retries{0};  // lost connections that were retried
  std::atomic<uint64_t> parts_compared{0};
  PullCounters counters;

  // Returns true for a refresh in place. It places chunks above existing data.
  bool refreshes() const { return comparer != nullptr; }
};

}  // namespace sstferry
