#include "pipeline/serve/return_times.h"

#include <algorithm>

#include "format/limits.h"

namespace sstferry {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kShortest{kMinRetryAfterMillis};
constexpr milliseconds kLongest{kMaxRetryAfterMillis};
// Maximum number of times that are remembered. Further targets also get a time,
// but it is not remembered.
constexpr size_t kMaxTold = 65'536;

// Estimates how long a transfer still needs, from its speed so far. An estimate
// early in the transfer is inaccurate. So the result is at most the age of the
// transfer (but at least kShortest): it is better that the next target asks for
// the slot too early than too late. The result is never 0: after the last byte,
// the transfer's target still syncs and runs commands, and the source cannot
// see how long this takes.
milliseconds LeftOf(const PlaceUse& use) {
  const milliseconds least = std::max(kShortest, use.age / 16);
  const milliseconds most = std::max(kShortest, use.age);
  const double done = std::min(use.done, 1.0);
  return done <= 0.5 ? most
                     : std::clamp(milliseconds(static_cast<int64_t>(
                                      static_cast<double>(use.age.count()) *
                                      (1 - done) / done)),
                                  least, most);
}

}  // namespace

milliseconds ReturnTimes::Next(const std::vector<PlaceUse>& uses,
                               Clock::time_point now) {
  told_.erase(told_.begin(),
              std::upper_bound(told_.begin(), told_.end(), now));
  std::vector<milliseconds> left;
  milliseconds whole{0};
  for (const PlaceUse& use : uses) {
    left.push_back(LeftOf(use));
    whole += use.age + left.back();
  }
  std::sort(left.begin(), left.end());
  milliseconds wait =
      whole / static_cast<int64_t>(std::max<size_t>(1, uses.size()));
  for (size_t i = 0; i < left.size(); ++i) {
    const auto coming =
        std::upper_bound(told_.begin(), told_.end(), now + left[i]) -
        told_.begin();
    if (static_cast<size_t>(coming) <= i) {
      wait = left[i];
      break;
    }
  }
  wait = std::min(wait, kLongest);
  wait -= milliseconds(static_cast<int64_t>(
      std::uniform_real_distribution<double>(0, 0.125)(chance_) *
      static_cast<double>(wait.count())));
  wait = std::max(wait, kShortest);
  if (told_.size() < kMaxTold) {
    told_.insert(std::upper_bound(told_.begin(), told_.end(), now + wait),
                 now + wait);
  }
  return wait;
}

}  // namespace sstferry
