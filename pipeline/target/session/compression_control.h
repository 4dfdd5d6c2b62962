// Decides, with --compress auto, whether the source should compress: only
// while the link holds the transfer back.
//
// When it does, both ends wait for it at once: the source because what it sent
// does not leave, the target because nothing comes. A busy CPU or disk looks
// different: of the two ends one works while the other waits. So the measure
// is the smaller of two shares of lane time (CPU time taken off, so that
// copying into and out of sockets counts as work):
//   source: blocked while sending / building or sending
//   target: blocked while receiving / everything but idle
// It sees through what forwards the connection (ssh -L), and the rate limit of
// `serve` looks like a link, that of `pull` does not: the target, which waits
// for it, does not wait for bytes then.
//
// Decisions are made per window of about a second, as the source's Stats come:
//   off -> on   both shares at least kHeldBack in kWindowsToSwitch windows
//               running. The rate of those windows is remembered.
//   on -> off   in kWindowsToSwitch windows running a share is below
//               kStillHeldBack (so something else holds the transfer back now)
//               and less than kMinGain times the remembered rate arrives. It
//               then stays off for kFirstRest, and twice as long each time
//               that happens again, up to kMaxRest.
//   on -> off   as a trial, without a rest, after kTrialAfter in which a share
//               was below kStillHeldBack: the link may have become faster than
//               the remembered rate. If it has not, compression is on again
//               after kWindowsToSwitch windows.
// The first kSettleWindows windows after switching on are not judged: what lay
// in socket buffers was not compressed yet.
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

// Threads: one. The source's figures are a peer's: whatever they are, they do
//   nothing worse than switch.
class CompressionControl {
 public:
  static constexpr uint64_t kWindowMicros = 700'000;
  // Windows grow until lanes have booked as much on both sides.
  static constexpr uint64_t kMinLaneMicros = 300'000;
  static constexpr double kHeldBack = 0.75;
  static constexpr double kStillHeldBack = 0.5;
  static constexpr double kMinGain = 1.1;
  static constexpr int kWindowsToSwitch = 2;
  static constexpr int kSettleWindows = 2;
  static constexpr uint64_t kFirstRestMicros = 10'000'000;
  static constexpr uint64_t kMaxRestMicros = 80'000'000;
  static constexpr uint64_t kTrialAfterMicros = 30'000'000;

  // Whether the source should compress from now on.
  bool Decide(const CompressionSample& now);
  bool on() const { return on_; }

 private:
  void WhileOff(double held_back, double rate, uint64_t wall_micros);
  void WhileOn(double held_back, double rate, uint64_t wall_micros,
               uint64_t window_micros);
  void SwitchOff(uint64_t rest_until_micros);

  CompressionSample begin_;  // of the window
  bool on_ = false;
  int windows_ = 0;          // off: held back; on: useless; running
  int settle_windows_ = 0;
  double rate_sum_ = 0;      // of the windows counted while off
  double rate_before_ = 0;   // bytes per microsecond without compression
  uint64_t not_held_micros_ = 0;
  uint64_t rest_until_micros_ = 0;
  uint64_t next_rest_micros_ = kFirstRestMicros;
};

}  // namespace sstferry
