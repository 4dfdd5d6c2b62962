// When targets that found no place at a server ask again.
#pragma once

#include <chrono>
#include <random>
#include <vector>

#include "sstferry/transport.h"

namespace sstferry {

// How far a transfer has come that has a place.
struct PlaceUse {
  std::chrono::milliseconds age{0};
  double done = 0;  // of its bytes, 0 to 1 or, if the plan was low, more
};

// No target waits in line: each asks again at about the time at which a place
// becomes free that no other one was told to come for, and gets it if it is the
// first to ask. Three places whose transfers end in 2, 5 and 9 seconds, and
// four targets that ask now: they are told 2, 5, 9 seconds, and the time that
// one transfer takes.
//
// Threads: one at a time.
class ReturnTimes {
 public:
  // Returns after what time, kMinRetryAfterMillis to kMaxRetryAfterMillis, the
  // next target shall ask again. A part of it is chance, so that many do not
  // come at once.
  std::chrono::milliseconds Next(const std::vector<PlaceUse>& uses,
                                 Clock::time_point now);

 private:
  std::minstd_rand chance_{std::random_device()()};
  std::vector<Clock::time_point> told_;  // sorted; those to come
};

}  // namespace sstferry
