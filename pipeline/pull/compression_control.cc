#include "pipeline/pull/compression_control.h"

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
  const bool is_link_bound =
      std::min(Share(Since(begin_.source_blocked_micros,
                           now.source_blocked_micros), source),
               Share(Since(begin_.target_blocked_micros,
                           now.target_blocked_micros), target)) >= kLinkBound;
  const double rate =
      static_cast<double>(Since(begin_.sst_bytes, now.sst_bytes)) /
      static_cast<double>(wall);
  begin_ = now;
  const bool changes = on_ ? !is_link_bound && rate < kMinGain * rate_before_
                           : is_link_bound &&
                                 now.wall_micros >= rest_until_micros_;
  windows_ = changes ? windows_ + 1 : 0;
  if (!on_) {
    rate_before_ = rate;
  }
  if (windows_ == (on_ ? kWindowsToEnd : kWindowsToBegin)) {
    rest_until_micros_ = on_ ? now.wall_micros + kRestMicros : 0;
    on_ = !on_;
    windows_ = 0;
  }
  return on_;
}

}  // namespace sstferry
