// Chooses what a pull asks its source for about compression on the wire.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "format/messages.h"
#include "pipeline/pull/compression_control.h"
#include "pipeline/pull/pull_counters.h"
#include "pipeline/pull/pull_reporter.h"
#include "sstferry/options.h"

namespace sstferry {

// Ownership: borrows all it gets.
// Threads:   OnStats() from the session's reader; all else from the pull's own.
class PullCompression {
 public:
  PullCompression(const PullOptions* options, const PullCounters* counters,
                  PullReporter* report)
      : options_(options), counters_(counters), report_(report) {}

  // Returns the option, where the source can do it.
  WireCompression Choose(const HelloAck& source);
  // Returns the flags of frames that lanes accept then.
  uint16_t frame_flags() const;
  void LanesStart();
  // Returns what to tell the source, which is at these counts.
  std::optional<Compress> OnStats(const Stats& theirs);

 private:
  CompressionSample SampleOf(const Stats& theirs) const;

  const PullOptions* const options_;
  const PullCounters* const counters_;
  PullReporter* const report_;
  WireCompression chosen_ = WireCompression::kNone;
  CompressionControl control_;  // the session's reader's
  std::chrono::steady_clock::time_point lanes_started_;
  std::atomic<bool> is_automatic_{false};  // lanes_started_ is set
};

}  // namespace sstferry
