// The place of one lane at the source: which of its connections is in use, and
// by whom.
#pragma once

#include <condition_variable>
#include <mutex>

#include "pipeline/wire/channel.h"

namespace sstferry {

// A lane is served by one thread at a time, that of the connection which came
// first. When the connection is lost while anything is not acknowledged, the
// thread parks with what it builds and goes on with the connection that comes,
// whose own thread only waits until its channel is no longer needed.
//
// Ownership: borrows each channel while its thread is inside Enter(), or
//   serves.
// Threads:   Enter() and Stop() from any, the rest from the serving one.
// Bounded:   parked and waiting threads go on at Stop(), which comes with the
//   end of the transfer at the latest.
class LanePort {
 public:
  enum class Role {
    kServe,  // this thread serves the lane, then calls Leave()
    kLeave,  // the channel is no longer needed
  };

  // Makes `channel` the lane's connection and closes the one before.
  Role Enter(Channel* channel);
  void Leave();

  // Gives up `lost` and waits for the next connection; null once stopped, or
  // interrupted since `lost` came into use.
  Channel* AwaitNext(const Channel* lost);
  // A newer connection has come than the one in use.
  bool replaced() const;
  // Closes what is connected; who serves the lane ends instead of parking.
  void Interrupt();
  // Interrupts for good: nobody is served any more.
  void Stop();

 private:
  mutable std::mutex mu_;
  std::condition_variable changed_;
  Channel* newest_ = nullptr;  // under mu_, and all below; null: lost
  Channel* used_ = nullptr;    // by the serving thread
  bool serving_ = false;
  bool interrupted_ = false;  // since used_ was set last
  bool stopped_ = false;

  void CloseBoth();  // under mu_
};

}  // namespace sstferry
