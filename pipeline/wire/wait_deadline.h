// The deadline of one waiting call, computed from a WaitLimit.
#pragma once

#include <string>

#include "sstferry/transport.h"

namespace sstferry {

// Tracks the limits of one waiting call. Threads: one.
class WaitDeadline {
 public:
  explicit WaitDeadline(const WaitLimit& limit);

  // Restarts the idle limit because a byte was transferred. Takes effect at the
  // next WakeAt(), so that a call that never waits never reads the clock.
  void Progress() { idle_until_known_ = false; }

  // Returns the time at which to stop waiting: at most an hour from now,
  // because some system calls accept no longer waits. After waking, check
  // Expired() and call WakeAt() again.
  Clock::time_point WakeAt();
  // Returns the time until WakeAt() in milliseconds, rounded up, for poll(2).
  int PollMillis();
  bool Expired();

  // Returns a TimedOut status with kDeadPeer: "WHAT: no byte for 30000 ms" or
  // "WHAT: not done in the time allowed".
  [[nodiscard]] rocksdb::Status Timeout(const std::string& what) const;

 private:
  Clock::time_point Deadline();
  uint64_t ProgressElsewhere() const;

  const WaitLimit limit_;
  uint64_t seen_ = 0;  // value of limit_.progress when idle time began
  bool idle_until_known_ = false;
  Clock::time_point idle_until_;
};

// Make the statuses that Connection returns. `what`: peer and action.
[[nodiscard]] rocksdb::Status PeerGone(const std::string& what);     // IOError
[[nodiscard]] rocksdb::Status ClosedHere(const std::string& what);   // Aborted

}  // namespace sstferry
