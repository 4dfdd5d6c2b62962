// Lets threads wait for a period or for a request to stop.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace sstferry {

// A request to stop that threads can wait for. Threads: any.
class StopSignal {
 public:
  void Stop() {
    std::lock_guard<std::mutex> lock(mu_);
    stopped_ = true;
    changed_.notify_all();
  }
  bool stopped() const {
    std::lock_guard<std::mutex> lock(mu_);
    return stopped_;
  }
  // Blocks until Stop() was called (returns true), or `time` has passed
  // (false).
  bool WaitFor(std::chrono::milliseconds time) {
    std::unique_lock<std::mutex> lock(mu_);
    return changed_.wait_for(lock, time, [this] { return stopped_; });
  }

 private:
  mutable std::mutex mu_;
  std::condition_variable changed_;
  bool stopped_ = false;  // under mu_
};

}  // namespace sstferry
