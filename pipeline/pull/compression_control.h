// Decides, with --compress auto, whether the source compresses what it sends.
// Compression is useful if the network link is the bottleneck.
//
// If the link is the bottleneck, both sides wait for it at the same time. The
// sends of the source block, and no bytes arrive at the target. If a CPU or a
// disk is the bottleneck, one side works while the other one waits. So the
// decision uses the smaller of these two shares of lane time:
//   source: blocked while sending / building or sending
//   target: blocked while receiving / everything except idle
// Blocked time excludes CPU time, so copying into and out of sockets counts as
// work.
//
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

// Decides about compression for one pull. Does not trust the source's numbers:
// wrong numbers can only turn compression on or off. Threads: one.
class CompressionControl {
 public:
  static constexpr uint64_t kWindowMicros = 700'000;
  // A window ends when the lanes of both sides have recorded at least this much
  // time.
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
