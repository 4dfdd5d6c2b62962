// The deadlines of one waiting call: the rest of a WaitLimit.
#pragma once

#include <string>

#include "sstferry/transport.h"

namespace sstferry {

// Threads: used by one call.
class WaitDeadline {
 public:
  explicit WaitDeadline(const WaitLimit& limit);

  // Restarts the idle limit because a byte moved. Takes effect at the next
  // WakeAt(), so a call that never waits never reads the clock.
  void Progress() { idle_until_known_ = false; }

  // Returns when to stop waiting: at most an hour from now, so that callers may
  // pass it to any system call. Call again and compare with Expired().
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

// Make the codes of Connection. `what` names the peer and the action.
[[nodiscard]] rocksdb::Status PeerGone(const std::string& what);     // IOError
[[nodiscard]] rocksdb::Status ClosedHere(const std::string& what);   // Aborted

}  // namespace sstferry
