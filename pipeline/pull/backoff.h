// Decides how long to wait before a failed try is repeated, and when to give
// up.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "sstferry/transport.h"

namespace sstferry {

// Settings of a Backoff.
struct BackoffOptions {
  // The waits double from `first` to `longest`. Half of each wait is random, so
  // that many clients that lost the same server do not reconnect at the same
  // moment.
  std::chrono::milliseconds first{100};
  std::chrono::milliseconds longest{5'000};
  // Maximum time without progress; 0: never retry.
  std::chrono::milliseconds give_up_after{0};
  // Returns a number that grows while the caller makes progress. If null, the
  // time without progress starts at the first failure.
  std::function<uint64_t()> progress;
  // For tests. If null, a Backoff uses the steady clock and random numbers in
  // [0, 1).
  std::function<Clock::time_point()> now;
  std::function<double()> chance;
};

// Computes the waits between the tries of one connection or of one call.
// Threads: one.
class Backoff {
 public:
  explicit Backoff(BackoffOptions options);

  // Called after a failed try. Returns true and sets *wait to the time before
  // the next try, or returns false if it is time to give up. The time without
  // progress starts at the first failure after the latest progress.
  bool Next(std::chrono::milliseconds* wait);
  // Records that a try succeeded: the next wait is `first` again.
  void Succeeded() { failures_ = 0; }

 private:
  BackoffOptions options_;
  int failures_ = 0;
  bool counting_ = false;
  uint64_t seen_ = 0;
  Clock::time_point since_;
};

}  // namespace sstferry
