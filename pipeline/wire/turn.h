// Lets one thread write at a time; the others wait, up to a deadline.
#pragma once

#include <condition_variable>
#include <mutex>

#include "pipeline/wire/wait_deadline.h"

namespace sstferry {

// A timed mutex that ThreadSanitizer supports. GCC 12's ThreadSanitizer does
// not support pthread_mutex_clocklock, which std::timed_mutex uses.
//
// Threads: any.
class Turn {
 public:
  // Blocks until it is this thread's turn. Returns false if the deadline passes
  // first. After true, call Give().
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

// Calls Give() in its destructor.
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
