// Counts what the lanes of one pull receive, while they receive it.
#pragma once

#include <atomic>
#include <cstdint>

#include "pipeline/base/stage_clock.h"

namespace sstferry {

// Threads: any.
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

}  // namespace sstferry
