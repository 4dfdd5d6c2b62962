// If a server has no free slot for a transfer, chooses when its target asks
// again.
#pragma once

#include <chrono>
#include <random>
#include <vector>

#include "sstferry/transport.h"

namespace sstferry {

// The progress of a transfer that has a slot at the server.
struct PlaceUse {
  std::chrono::milliseconds age{0};
  double done = 0;  // bytes sent / estimated bytes; may exceed 1
};

// Tells each target that finds no free slot when to ask again. Targets do not
// wait in a queue: the first target that asks gets a free slot. Each target is
// told a time at which a slot probably becomes free, and for each slot only one
// target is told. For example, the transfers in three slots will end in 2, 5
// and 9 s. Four targets that ask now are told 2 s, 5 s, 9 s and the duration of
// one transfer.
//
// Threads: one at a time.
class ReturnTimes {
 public:
  // Returns the time after which the next target must ask again. This time is
  // between kMinRetryAfterMillis and kMaxRetryAfterMillis, and partly random,
  // so that targets do not ask at the same time.
  std::chrono::milliseconds Next(const std::vector<PlaceUse>& uses,
                                 Clock::time_point now);

 private:
  std::minstd_rand chance_{std::random_device()()};
  std::vector<Clock::time_point> told_;  // future times only, sorted
};

}  // namespace sstferry
