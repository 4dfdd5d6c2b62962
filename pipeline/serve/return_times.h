// Chooses when targets that found no free transfer slot at a server ask again.
#pragma once

#include <chrono>
#include <random>
#include <vector>

#include "sstferry/transport.h"

namespace sstferry {

// The progress of a transfer that has a slot.
struct PlaceUse {
  std::chrono::milliseconds age{0};
  double done = 0;  // share of its bytes; above 1 if the estimate was low
};

// Spreads the returns of targets. Targets do not wait in line: each target is
// told a time to ask again, at about which a slot becomes free. Each free slot
// is announced to one target only, but the first target to ask gets the slot.
// For example, the transfers in three slots end in 2, 5 and 9 s. Then four
// targets that ask now are told 2 s, 5 s, 9 s, and the duration of one
// transfer.
//
// Threads: one at a time.
class ReturnTimes {
 public:
  // Returns the time after which the next target shall ask again, from
  // kMinRetryAfterMillis to kMaxRetryAfterMillis. Part of it is random, so that
  // many targets do not ask at once.
  std::chrono::milliseconds Next(const std::vector<PlaceUse>& uses,
                                 Clock::time_point now);

 private:
  std::minstd_rand chance_{std::random_device()()};
  std::vector<Clock::time_point> told_;  // sorted; future times only
};

}  // namespace sstferry
