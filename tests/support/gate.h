// Lets a test stop another thread at a certain point.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace sstferry {

// Threads: any. Open() must be called before anything is destroyed that a
// thread in Pass() uses.
class Gate {
 public:
  // Reports that the gate was reached, and blocks until it is open.
  void Pass() {
    std::unique_lock<std::mutex> lock(mu_);
    reached_++;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  void Open() {
    std::lock_guard<std::mutex> lock(mu_);
    open_ = true;
    changed_.notify_all();
  }
  // Blocks until a thread reaches the gate; returns false if none does in time.
  bool AwaitReached(
      std::chrono::seconds limit = std::chrono::seconds(60)) {
    std::unique_lock<std::mutex> lock(mu_);
    return changed_.wait_for(lock, limit, [this] { return reached_ > 0; });
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  int reached_ = 0;    // under mu_
  bool open_ = false;  // under mu_
};

}  // namespace sstferry
