// One lane's slot at the source: tracks which connection serves the lane.
#pragma once

#include <condition_variable>
#include <mutex>

#include "pipeline/wire/channel.h"

namespace sstferry {

// One thread serves a lane at a time: that of its newest connection. A target
// that lost a connection connects again under the same lane number; the
// connection before is closed then, so that its thread ends, and the new one
// begins once it has.
//
// Ownership: borrows a channel from Enter() to Leave(), or to the end of an
//   Enter() that returns false.
// Threads:   any.
// Bounded:   Stop() wakes waiting threads, at the latest at the end of the
//   transfer.
class LanePort {
 public:
  // Makes `channel` the lane's connection, closes the one before and blocks
  // until that one's thread has left. Returns true if the caller serves the
  // lane now, and then calls Leave(); false if a newer connection does, or
  // none is served any more.
  bool Enter(Channel* channel);
  void Leave(const Channel* channel);

  // Returns true if a newer connection than the one that is served has come.
  bool replaced() const;
  // Closes the connection; its thread ends. The target may connect again.
  void Close();
  // The same, and no connection is served any more.
  void Stop();

 private:
  void CloseBoth();  // under mu_

  mutable std::mutex mu_;
  std::condition_variable changed_;
  Channel* newest_ = nullptr;  // under mu_, and all below; null: it has left
  Channel* served_ = nullptr;  // the one that a thread serves
  bool stopped_ = false;
};

}  // namespace sstferry
