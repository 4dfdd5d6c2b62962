// Decides, with --compress auto, whether the source compresses: it should if
// the link is the bottleneck.
//
// In that case both sides wait for the link at the same time: the source
// because its sends block, the target because nothing arrives. If a CPU or disk
// is the bottleneck, one side works while the other waits. The measure is
// therefore the smaller of these two shares of lane time (blocked time excludes
// CPU time, so that copying into and out of sockets counts as work):
//   source: blocked while sending / building or sending
//   target: blocked while receiving / everything except idle
// A decision is made for each window of about a second, when Stats arrive from
// the source:
//   off -> on   both shares are at least kLinkBound in kWindowsToBegin
//               consecutive windows
//   on -> off   in kWindowsToEnd consecutive windows, a share is less than
//               kLinkBound, and the rate is less than kMinGain times the rate
//               without compression. Compression then stays off for
//               kRestMicros.
#pragma once

#include <cstdint>

namespace sstferry {

// Sums over all lanes since the start of the transfer.
struct CompressionSample {
  uint64_t wall_micros = 0;
  uint64_t source_active_micros = 0;
  uint64_t source_blocked_micros = 0;
  uint64_t target_active_micros = 0;
  uint64_t target_blocked_micros = 0;
  uint64_t sst_bytes = 0;  // arrived, counted before compression
};

// Makes the decisions for one pull. The source's values are not trusted, but
// wrong values can only turn compression on or off. Threads: one.
class CompressionControl {
 public:
  static constexpr uint64_t kWindowMicros = 700'000;
  // A window grows until lanes have recorded this much time on both sides.
  static constexpr uint64_t kMinLaneMicros = 300'000;
  static constexpr double kLinkBound = 0.75;
  static constexpr double kMinGain = 1.1;
  static constexpr int kWindowsToBegin = 2;
  static constexpr int kWindowsToEnd = 5;
  static constexpr uint64_t kRestMicros = 60'000'000;

  // Returns true if the source should compress from now on.
  bool Decide(const CompressionSample& now);
  bool on() const { return on_; }

 private:
  CompressionSample begin_;  // at the start of the window
  bool on_ = false;
  int windows_ = 0;          // consecutive windows that suggest a change
  double rate_before_ = 0;   // bytes per microsecond without compression
  uint64_t rest_until_micros_ = 0;
};

}  // namespace sstferry
