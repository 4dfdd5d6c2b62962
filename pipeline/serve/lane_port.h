// Tracks which connection serves one lane at the source. A target may have
// connected the lane several times.
#pragma once

#include <condition_variable>
#include <mutex>

#include "pipeline/wire/channel.h"

namespace sstferry {

// Lets only one thread at a time serve a lane: the thread of the newest
// connection. A target that lost a connection connects again with the same lane
// number. LanePort then closes the previous connection. After the thread of the
// previous connection has ended, it lets the thread of the new connection serve
// the lane.
//
// Ownership: borrows a channel from Enter() to Leave(). If Enter() returns
//            false, borrows it only until then.
// Threads:   any.
// Bounded:   Stop(), which is called at the latest when the transfer ends,
//            wakes waiting threads.
class LanePort {
 public:
  // Makes `channel` the connection of the lane. Closes the previous connection
  // and waits until the thread of that connection has called Leave(). Returns
  // true if the caller must now serve the lane and then call Leave(). Returns
  // false if a newer connection serves the lane, or after Stop().
  bool Enter(Channel* channel);
  void Leave(const Channel* channel);

  // Returns true if a newer connection waits for the served one.
  bool replaced() const;
  // Closes the connection, so that its thread ends. The target may connect
  // again.
  void Close();
  // Closes the connection, and refuses later connections.
  void Stop();

 private:
  void CloseBoth();  // under mu_

  mutable std::mutex mu_;
  std::condition_variable changed_;
  Channel* newest_ = nullptr;  // under mu_, and all below; null after Leave()
  Channel* served_ = nullptr;  // the connection that is served
  bool stopped_ = false;
};

}  // namespace sstferry
