// Holds what the lanes of one pull share.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "format/messages.h"
#include "pipeline/base/stage_clock.h"
#include "pipeline/base/stop_signal.h"
#include "pipeline/disk/access.h"
#include "pipeline/disk/space_gate.h"
#include "pipeline/parts/group_index.h"
#include "pipeline/pull/chunk_store.h"
#include "pipeline/pull/clone_layout.h"
#include "pipeline/pull/part_scheduler.h"
#include "pipeline/pull/stall_guard.h"
#include "pipeline/wire/token_bucket.h"
#include "rocksdb/comparator.h"
#include "rocksdb/file_system.h"
#include "sstferry/options.h"

namespace sstferry {

struct PullCounters {
  std::atomic<uint64_t> entries{0};
  std::atomic<uint64_t> key_value_bytes{0};
  std::atomic<uint64_t> sst_bytes{0};  // less those of chunks begun anew
  // Grows with every byte of a chunk, however often it comes, and with every
  // answer to a comparison. Only its growth says something: the source serves.
  std::atomic<uint64_t> progress{0};
  std::atomic<uint64_t> wire_bytes{0};
  std::atomic<uint64_t> staged_bytes{0};  // received, not yet handed over
  // Estimated bytes of what is done: grows to the plan's estimate exactly.
  std::atomic<uint64_t> planned_bytes_done{0};
  // The piece of the stage "receive" in which lanes could do nothing but wait.
  std::atomic<uint64_t> receive_blocked_micros{0};
  // The piece in which they waited for max_rate_bytes_per_sec.
  std::atomic<uint64_t> paced_micros{0};
  // Count the frames that came compressed: how many, what they hold, what they
  // took on the wire.
  std::atomic<uint64_t> compressed_frames{0};
  std::atomic<uint64_t> decompressed_bytes{0};
  std::atomic<uint64_t> compressed_bytes{0};
  StageTotals stages;
};

struct PullFamily {
  const rocksdb::Comparator* comparator = nullptr;
  uint32_t format_version = 0;
};

// Ownership: borrows all it points to. Constant but for the counters, the
//   pace, the scheduler, the store and the totals.
struct PullState {
  const std::vector<Part>* parts = nullptr;
  // By part id; the lane that has the part changes its own.
  std::vector<PartStart> starts;
  std::vector<PullFamily> families;
  // A refresh in place: chunks lie above what a database holds.
  bool refreshes = false;
  // As asked for, or as the unfinished pull or a known fault demands.
  bool verify = false;
  CompareMode compare = CompareMode::kFiles;
  // As in a DeltaRequest.
  uint32_t most_point_deletions = 0;
  // Reads what this side has of a piece of a part: entries, as many as fit
  // (*rest is the key of the next one), or only the first and the last key (not
  // set: it has none).
  std::function<rocksdb::Status(const Part& part, const KeyInterval& piece,
                                GroupIndex* index,
                                std::optional<std::string>* rest)>
      index;
  std::function<rocksdb::Status(const Part& part, const KeyInterval& piece,
                                std::optional<std::string>* first,
                                std::optional<std::string>* last)>
      outermost;
  TransferId transfer_id{};
  uint64_t chunk_bytes = 0;
  // Tells where the units of a clone lie; null if the pull makes none.
  CloneLayout* clone = nullptr;
  std::string staging_dir;
  rocksdb::FileSystem* file_system = nullptr;
  bool sync_chunks = true;
  Access file_access;  // of a chunk that is whole
  TokenBucket pace{0};  // of the SST bytes that go into staging, of all lanes
  SpaceGate* space = nullptr;  // null: nothing is kept free
  PartScheduler* scheduler = nullptr;
  ChunkStore* store = nullptr;
  const StallGuard* guard = nullptr;
  // Opens a lane: *channel stays valid until the next call for that lane.
  std::function<rocksdb::Status(uint32_t lane, Channel** channel)> open_lane;
  // A lost lane is tried again for so long without progress; 0: never.
  std::chrono::milliseconds retry_for{0};
  // Bound one chunk, and a MiB of it, on one connection; then on another one.
  std::chrono::milliseconds chunk_time{120'000};
  std::chrono::milliseconds chunk_time_per_mib{16'000};
  StopSignal* stop = nullptr;  // null: nothing stops a wait before a try
  LogFunction log;
  std::atomic<uint32_t> retries{0};  // connections lost and tried again
  PullCounters counters;

  std::atomic<uint64_t> parts_compared{0};
  mutable std::mutex mu;
  std::vector<Totals> family_totals;  // under mu
  std::vector<ReceivedPart> ended;       // under mu: parts that are whole
  std::vector<Totals> family_compared;  // under mu: by groups; bytes estimated
  uint64_t chunks_built = 0;          // under mu
  uint64_t chunks_cloned = 0;         // under mu
  uint64_t chunks_delta = 0;          // under mu
  uint64_t parts_delta = 0;          // under mu: by comparison
  uint64_t entries_put = 0;           // under mu: by deltas
  uint64_t entries_deleted = 0;       // under mu: the same
  uint64_t chunks_unchecked = 0;      // under mu
};

}  // namespace sstferry
