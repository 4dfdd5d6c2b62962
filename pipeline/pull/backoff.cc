#include "pipeline/pull/backoff.h"

#include <algorithm>
#include <random>

namespace sstferry {
namespace {

using std::chrono::milliseconds;

double Chance() {
  thread_local std::minstd_rand engine{std::random_device()()};
  return std::uniform_real_distribution<double>(0, 1)(engine);
}

}  // namespace

Backoff::Backoff(BackoffOptions options) : options_(std::move(options)) {
  if (!options_.now) {
    options_.now = [] { return Clock::now(); };
  }
  if (!options_.chance) {
    options_.chance = Chance;
  }
}

bool Backoff::Next(milliseconds* wait) {
  const Clock::time_point now = options_.now();
  const uint64_t progress = options_.progress ? options_.progress() : 0;
  if (!counting_ || progress != seen_) {
    counting_ = true;
    seen_ = progress;
    since_ = now;
  }
  const auto left = std::chrono::ceil<milliseconds>(
      since_ + options_.give_up_after - now);
  if (left <= milliseconds::zero()) {
    return false;
  }
  milliseconds whole = options_.first;
  for (int i = 0; i < failures_ && whole < options_.longest; ++i) {
    whole *= 2;
  }
  whole = std::min(whole, options_.longest);
  failures_++;
  const milliseconds half = whole / 2;
  const milliseconds by_chance(static_cast<int64_t>(
      options_.chance() * static_cast<double>((whole - half).count())));
  // Shorten the wait, so that the last try happens when `give_up_after` has
  // passed, not earlier.
  *wait = std::min(half + by_chance, left);
  return true;
}

}  // namespace sstferry
