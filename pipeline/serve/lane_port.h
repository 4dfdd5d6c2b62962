// Tracks which connection serves one lane at the source.
#pragma once

#include <condition_variable>
#include <mutex>

#include "pipeline/wire/channel.h"

namespace sstferry {

// Lets one thread at a time serve a lane: the thread of its newest connection.
// A target that lost a connection connects again with the same lane number.
// LanePort then closes the previous connection, so that its thread ends, and
// only after that lets the thread of the new connection serve.
//
// Ownership: borrows a channel from Enter() to Leave(), or to the end of an
//            Enter() that returns false.
// Threads:   any.
// Bounded:   Stop() wakes waiting threads, at the latest at the end of the
//            transfer.
class LanePort {
 public:
  // Makes `channel` the lane's connection, closes the previous one and blocks
  // until the thread of the previous one has left. Returns true if the caller
  // must serve the lane now and then call Leave(); false if a newer connection
  // serves the lane, or after Stop().
  bool Enter(Channel* channel);
  void Leave(const Channel* channel);

  // Returns true if there is a newer connection than the served one.
  bool replaced() const;
  // Closes the connection, so that its thread ends. The target may connect
  // again.
  void Close();
  // Closes the connection, and refuses all later ones.
  void Stop();

 private:
  void CloseBoth();  // under mu_

  mutable std::mutex mu_;
  std::condition_variable changed_;
  Channel* newest_ = nullptr;  // under mu_, and all below; null after Leave()
  Channel* served_ = nullptr;  // the connection that a thread serves
  bool stopped_ = false;
};

}  // namespace sstferry
