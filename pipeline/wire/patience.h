// The deadlines of one waiting call: what is left of a WaitLimit.
#pragma once

#include <string>

#include "sstferry/transport.h"

namespace sstferry {

// Threads: one call's own.
class Patience {
 public:
  explicit Patience(const WaitLimit& limit);

  // A byte moved: the idle limit starts again. Takes effect at the next
  // WakeAt(), so a call that never waits never reads the clock.
  void Progress() { idle_until_known_ = false; }

  // When to stop waiting. Never further away than an hour, so that callers may
  // hand it to any system call; call again and compare with Expired().
  Clock::time_point WakeAt();
  // The same as milliseconds for poll(2), rounded up.
  int PollMillis();
  bool Expired();

  // TimedOut, kDeadPeer: "WHAT: no byte for 30000 ms" or
  // "WHAT: not done in the time allowed".
  [[nodiscard]] rocksdb::Status Timeout(const std::string& what) const;

 private:
  Clock::time_point Deadline();
  uint64_t ProgressElsewhere() const;

  const WaitLimit limit_;
  uint64_t seen_ = 0;  // of limit_.progress, when the idle limit began
  bool idle_until_known_ = false;
  Clock::time_point idle_until_;
};

// The codes Connection promises. `what` names the peer and the action.
[[nodiscard]] rocksdb::Status PeerGone(const std::string& what);     // IOError
[[nodiscard]] rocksdb::Status ClosedHere(const std::string& what);   // Aborted

}  // namespace sstferry
