#include "pipeline/target/session/compression_control.h"

#include <algorithm>

namespace sstferry {
namespace {

uint64_t Since(uint64_t begin, uint64_t now) {
  return now > begin ? now - begin : 0;
}

double Share(uint64_t part, uint64_t whole) {
  return std::min(1.0, static_cast<double>(part) / static_cast<double>(whole));
}

}  // namespace

bool CompressionControl::Decide(const CompressionSample& now) {
  const uint64_t wall = Since(begin_.wall_micros, now.wall_micros);
  const uint64_t source =
      Since(begin_.source_active_micros, now.source_active_micros);
  const uint64_t target =
      Since(begin_.target_active_micros, now.target_active_micros);
  if (wall < kWindowMicros || source < kMinLaneMicros ||
      target < kMinLaneMicros) {
    return on_;
  }
  const double held_back = std::min(
      Share(Since(begin_.source_blocked_micros, now.source_blocked_micros),
            source),
      Share(Since(begin_.target_blocked_micros, now.target_blocked_micros),
            target));
  const double rate =
      static_cast<double>(Since(begin_.sst_bytes, now.sst_bytes)) /
      static_cast<double>(wall);
  begin_ = now;
  if (on_) {
    WhileOn(held_back, rate, now.wall_micros, wall);
  } else {
    WhileOff(held_back, rate, now.wall_micros);
  }
  return on_;
}

void CompressionControl::WhileOff(double held_back, double rate,
                                  uint64_t wall_micros) {
  if (held_back < kHeldBack || wall_micros < rest_until_micros_) {
    windows_ = 0;
    rate_sum_ = 0;
    return;
  }
  rate_sum_ += rate;
  if (++windows_ == kWindowsToSwitch) {
    on_ = true;
    rate_before_ = rate_sum_ / windows_;
    windows_ = 0;
    rate_sum_ = 0;
    settle_windows_ = kSettleWindows;
    not_held_micros_ = 0;
  }
}

void CompressionControl::WhileOn(double held_back, double rate,
                                 uint64_t wall_micros,
                                 uint64_t window_micros) {
  if (settle_windows_ > 0) {
    --settle_windows_;
    return;
  }
  if (held_back >= kStillHeldBack) {
    windows_ = 0;
    not_held_micros_ = 0;
    next_rest_micros_ = kFirstRestMicros;
    return;
  }
  not_held_micros_ += window_micros;
  windows_ = rate < kMinGain * rate_before_ ? windows_ + 1 : 0;
  if (windows_ == kWindowsToSwitch) {
    SwitchOff(wall_micros + next_rest_micros_);
    next_rest_micros_ = std::min(2 * next_rest_micros_, kMaxRestMicros);
  } else if (not_held_micros_ >= kTrialAfterMicros) {
    SwitchOff(0);
  }
}

void CompressionControl::SwitchOff(uint64_t rest_until_micros) {
  on_ = false;
  windows_ = 0;
  rest_until_micros_ = rest_until_micros;
}

}  // namespace sstferry
