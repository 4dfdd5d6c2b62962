// Counts what the lanes of one pull receive, as they receive it.
#pragma once

#include <atomic>
#include <cstdint>

#include "pipeline/base/stage_clock.h"

namespace sstferry {

// The counters of one pull. Threads: any.
struct PullCounters {
  std::atomic<uint64_t> entries{0};
  std::atomic<uint64_t> key_value_bytes{0};
  std::atomic<uint64_t> sst_bytes{0};  // without chunks that started over
  // Grows with every received byte of a chunk, even if the byte is received a
  // second time, and with every answer to a comparison. Only its growth has a
  // meaning: it shows that the source is working for this pull.
  std::atomic<uint64_t> progress{0};
  std::atomic<uint64_t> wire_bytes{0};
  // Estimated bytes of completed work. Its final value is exactly the plan's
  // estimate.
  std::atomic<uint64_t> planned_bytes_done{0};
  // Part of the time of stage "receive" in which lanes only waited.
  std::atomic<uint64_t> receive_blocked_micros{0};
  // Part of the time of stage "receive" in which lanes waited because of
  // max_rate_bytes_per_sec.
  std::atomic<uint64_t> paced_micros{0};
  // Number of compressed frames, their decompressed bytes, and their bytes on
  // the wire.
  std::atomic<uint64_t> compressed_frames{0};
  std::atomic<uint64_t> decompressed_bytes{0};
  std::atomic<uint64_t> compressed_bytes{0};
  StageTotals stages;
};

}  // namespace sstferry
