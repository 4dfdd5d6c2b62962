// Decides whether a pull's source compresses what it sends.
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

// Decides about compression for one pull.
//
// Ownership: borrows its arguments.
// Threads:   OnStats() from the session's reader; the other functions from the
//            pull's thread.
class PullCompression {
 public:
  PullCompression(const PullOptions* options, const PullCounters* counters,
                  PullReporter* report)
      : options_(options), counters_(counters), report_(report) {}

  // Returns the compression that the pull requests: the value of its option, or
  // none if the source is local or does not support that compression.
  WireCompression Choose(const HelloAck& source);
  // Returns the frame flags that lanes accept after Choose().
  uint16_t frame_flags() const;
  void LanesStart();
  // Returns the message with which to answer the source's Stats `theirs`;
  // nullopt: none.
  std::optional<Compress> OnStats(const Stats& theirs);

 private:
  CompressionSample SampleOf(const Stats& theirs) const;

  const PullOptions* const options_;
  const PullCounters* const counters_;
  PullReporter* const report_;
  WireCompression chosen_ = WireCompression::kNone;
  CompressionControl control_;  // used by the session's reader only
  std::chrono::steady_clock::time_point lanes_started_;
  std::atomic<bool> is_automatic_{false};  // set after lanes_started_
};

}  // namespace sstferry
