// One lane's slot at the source: tracks which connection serves the lane.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "pipeline/wire/channel.h"

namespace sstferry {

// One thread serves a lane at a time: that of the lane's first connection. If
// the connection is lost before everything is acknowledged, the thread parks
// with its unfinished chunk and resumes with the next connection. The thread of
// that connection only waits until its channel is no longer needed.
//
// Ownership: borrows each channel while its thread is inside Enter(), or
//   serves.
// Threads:   Enter() and Stop() from any thread, the rest from the serving one.
// Bounded:   Stop() wakes parked and waiting threads, at the latest at the end
//   of the transfer.
class LanePort {
 public:
  enum class Role {
    kServe,  // this thread serves the lane, then calls Leave()
    kLeave,  // the channel is no longer needed
  };

  // Makes `channel` the lane's connection and closes the previous one.
  Role Enter(Channel* channel);
  void Leave();

  // Gives up `lost` and waits for the next connection. Returns null once
  // stopped, or if interrupted since `lost` came into use.
  Channel* AwaitNext(const Channel* lost);
  // True if a newer connection than the one in use has arrived.
  bool replaced() const;
  // Ends a thread that has been parked for `grace`, with the builder and the
  // window it holds, and closes a connection that brought nothing for so long;
  // its thread then parks. For lanes whose target is not connected.
  void EndIdle(std::chrono::milliseconds grace);
  // Closes the connections; the serving thread ends instead of parking.
  void Interrupt();
  // Interrupts permanently: no connection is served any more.
  void Stop();

 private:
  mutable std::mutex mu_;
  std::condition_variable changed_;
  Channel* newest_ = nullptr;  // under mu_, and all below; null: lost
  Channel* used_ = nullptr;    // in use by the serving thread
  bool serving_ = false;
  bool interrupted_ = false;  // since used_ was set last
  bool stopped_ = false;
  std::optional<Clock::time_point> parked_since_;

  void CloseBoth();  // under mu_
};

}  // namespace sstferry
