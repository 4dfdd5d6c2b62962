// Lets one thread at a time do something, such as write. Other threads wait for
// their turn, at most until a deadline.
#pragma once

#include <condition_variable>
#include <mutex>

#include "pipeline/wire/wait_deadline.h"

namespace sstferry {

// A mutex with a time limit. Replaces std::timed_mutex, which calls
// pthread_mutex_clocklock. The ThreadSanitizer of GCC 12 does not support this
// call.
//
// Threads: any.
class Turn {
 public:
  // Blocks until no other thread has the turn, takes the turn and returns true.
  // The caller must then call Give(). Returns false if the deadline passes
  // first.
  [[nodiscard]] bool Take(WaitDeadline* deadline) {
    std::unique_lock<std::mutex> lock(mu_);
    while (taken_) {
      if (deadline->Expired()) {
        return false;
      }
      given_.wait_until(lock, deadline->WakeAt());
    }
    taken_ = true;
    return true;
  }

  void Give() {
    {
      std::lock_guard<std::mutex> lock(mu_);
      taken_ = false;
    }
    given_.notify_one();
  }

 private:
  std::mutex mu_;
  std::condition_variable given_;
  bool taken_ = false;  // under mu_
};

// Gives the turn back when the object is destroyed.
class TurnGiver {
 public:
  explicit TurnGiver(Turn* turn) : turn_(turn) {}
  ~TurnGiver() { turn_->Give(); }
  TurnGiver(const TurnGiver&) = delete;
  TurnGiver& operator=(const TurnGiver&) = delete;

 private:
  Turn* const turn_;
};

}  // namespace sstferry
