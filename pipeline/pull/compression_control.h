// Decides, with --compress auto, whether the source compresses: while the link
// holds the transfer back.
//
// Then both ends wait for it at once: the source because what it sent does not
// leave, the target because nothing comes. A busy CPU or disk looks different:
// one end works while the other waits. So the measure is the smaller of two
// shares of lane time (CPU time taken off, so that copying into and out of
// sockets counts as work):
//   source: blocked while sending / building or sending
//   target: blocked while receiving / everything but idle
// A decision is made per window of about a second, as the source's Stats come:
//   off -> on   both shares at least kLinkBound in kWindowsToBegin windows
//               running
//   on -> off   in kWindowsToEnd windows running a share is less, and less than
//               kMinGain times the rate without compression arrives. Then it
//               stays off for kRestMicros.
#pragma once

#include <cstdint>

namespace sstferry {

// Sums over all lanes since the transfer began.
struct CompressionSample {
  uint64_t wall_micros = 0;
  uint64_t source_active_micros = 0;
  uint64_t source_blocked_micros = 0;
  uint64_t target_active_micros = 0;
  uint64_t target_blocked_micros = 0;
  uint64_t sst_bytes = 0;  // arrived, as they were before compression
};

// Threads: one. The source's figures are a peer's: whatever they are, they only
//   switch compression.
class CompressionControl {
 public:
  static constexpr uint64_t kWindowMicros = 700'000;
  // Windows grow until lanes have booked as much on both sides.
  static constexpr uint64_t kMinLaneMicros = 300'000;
  static constexpr double kLinkBound = 0.75;
  static constexpr double kMinGain = 1.1;
  static constexpr int kWindowsToBegin = 2;
  static constexpr int kWindowsToEnd = 5;
  static constexpr uint64_t kRestMicros = 60'000'000;

  // Returns whether the source should compress from now on.
  bool Decide(const CompressionSample& now);
  bool on() const { return on_; }

 private:
  CompressionSample begin_;  // of the window
  bool on_ = false;
  int windows_ = 0;          // running, that speak for a change
  double rate_before_ = 0;   // bytes per microsecond without compression
  uint64_t rest_until_micros_ = 0;
};

}  // namespace sstferry
