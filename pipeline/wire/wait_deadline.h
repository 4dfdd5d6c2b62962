// Computes from a WaitLimit when one waiting call must end.
#pragma once

#include <string>

#include "sstferry/transport.h"

namespace sstferry {

// Tracks the limits of one waiting call.
//
// Threads: one.
class WaitDeadline {
 public:
  explicit WaitDeadline(const WaitLimit& limit);

  // Called when a byte was transferred. Restarts the idle limit at the next
  // WakeAt() or Expired(). A call that never waits therefore never reads the
  // clock.
  void Progress() { idle_until_known_ = false; }

  // Returns the time until which the caller may sleep. This is at most an hour
  // from now, because some system calls do not accept a longer time. After the
  // sleep, call Expired(), and WakeAt() for the next sleep.
  Clock::time_point WakeAt();
  // Returns the milliseconds until WakeAt(), rounded up, for poll(2).
  int PollMillis();
  bool Expired();

  // Returns a TimedOut status with kDeadPeer. Its text is `what` and ": no byte
  // for 30 s" or ": not done in the time allowed".
  [[nodiscard]] rocksdb::Status Timeout(const std::string& what) const;

 private:
  Clock::time_point Deadline();
  uint64_t ProgressElsewhere() const;

  const WaitLimit limit_;
  uint64_t seen_ = 0;  // limit_.progress when the idle limit started
  bool idle_until_known_ = false;
  Clock::time_point idle_until_;
};

// Return the statuses that functions of Connection return. `what` is the peer
// and the action.
[[nodiscard]] rocksdb::Status PeerGone(const std::string& what);     // IOError
[[nodiscard]] rocksdb::Status ClosedHere(const std::string& what);   // Aborted

}  // namespace sstferry
