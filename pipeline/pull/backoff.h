// How long to wait before a lost connection is tried again, and for how long
// to go on trying.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "sstferry/transport.h"

namespace sstferry {

struct BackoffOptions {
  // Waits double from the first to the longest; half of each is chance, so
  // that many who lost the same peer do not come back at the same moment.
  std::chrono::milliseconds first{100};
  std::chrono::milliseconds longest{5'000};
  // Without progress; 0: nothing is tried again.
  std::chrono::milliseconds give_up_after{0};
  // Grows with whatever counts as progress; null: nothing does.
  std::function<uint64_t()> progress;
  // For tests; null: the steady clock, and chance in [0, 1).
  std::function<Clock::time_point()> now;
  std::function<double()> chance;
};

// Threads: one.
class Backoff {
 public:
  explicit Backoff(BackoffOptions options);

  // After a failure: true and how long to wait before the next try, or false:
  // it is time to give up. The time without progress begins with the first
  // failure after some.
  bool Next(std::chrono::milliseconds* wait);
  // Records that a try went well: the next wait is the first again.
  void Succeeded() { failures_ = 0; }

 private:
  BackoffOptions options_;
  int failures_ = 0;
  bool counting_ = false;
  uint64_t seen_ = 0;
  Clock::time_point since_;
};

}  // namespace sstferry
