// Holds what the lanes of one pull share, and nothing else: what they are asked
// for, what they use, and what they got.
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

struct PullFamily {
  const rocksdb::Comparator* comparator = nullptr;
  uint32_t format_version = 0;
};

// Holds what lanes got. Threads: any, under mu.
struct LaneResults {
  mutable std::mutex mu;
  std::vector<Totals> family_totals;
  std::vector<ReceivedPart> ended;      // parts that are whole
  uint64_t chunks_built = 0;
  uint64_t chunks_cloned = 0;
  uint64_t chunks_delta = 0;
  uint64_t parts_delta = 0;      // by comparison
  // Compared, and then proven to be the source's, or not at first.
  uint64_t parts_proven = 0;
  uint64_t parts_unproven = 0;
  uint64_t parts_whole = 0;  // sent, because this side held nothing
  uint64_t entries_put = 0;      // by deltas
  uint64_t entries_deleted = 0;  // the same
  uint64_t chunks_unchecked = 0;
};

// Ownership: borrows all it points to. Constant while lanes run, but for the
//   results, the counters, the pace, the scheduler and the store.
struct LaneShared : LaneResults {
  // --- what they are asked for -----------------------------------------------
  const std::vector<Part>* parts = nullptr;
  // By part id; the lane that has the part changes its own.
  std::vector<PartStart> starts;
  std::vector<PullFamily> families;
  TransferId transfer_id{};
  uint64_t chunk_bytes = 0;
  // Tells where the units of a clone lie; null if the pull makes none.
  CloneLayout* clone = nullptr;
  std::string staging_dir;
  bool sync_chunks = true;
  Access file_access;  // of a chunk that is whole
  // A lost lane is tried again for so long without progress; 0: never.
  std::chrono::milliseconds retry_for{0};
  // Bound one chunk, and a MiB of it, on one connection; then on another one.
  std::chrono::milliseconds chunk_time{120'000};
  std::chrono::milliseconds chunk_time_per_mib{16'000};

  // --- what they use ---------------------------------------------------------
  // Compares parts with what this side has of them; null: it is no refresh in
  // place.
  PartComparer* comparer = nullptr;
  // Opens a lane: *channel stays valid until the next call for that lane.
  std::function<rocksdb::Status(uint32_t lane, Channel** channel)> open_lane;
  rocksdb::FileSystem* file_system = nullptr;
  TokenBucket pace{0};  // of the SST bytes that go into staging, of all lanes
  SpaceGate* space = nullptr;  // null: nothing is kept free
  PartScheduler* scheduler = nullptr;
  ChunkStore* store = nullptr;  // null: none is open
  const StallGuard* guard = nullptr;
  StopSignal* stop = nullptr;  // null: nothing stops a wait before a try
  LogFunction log;
  LostSource* lost_source = nullptr;  // null: no loss is said

  // --- what they count, besides their results --------------------------------
  std::atomic<uint32_t> retries{0};  // connections lost and tried again
  std::atomic<uint64_t> parts_compared{0};
  PullCounters counters;

  // True for a refresh in place: chunks lie above what a database holds.
  bool refreshes() const { return comparer != nullptr; }
};

}  // namespace sstferry
