// Limits the number of concurrent requests to one store. Halves the limit when
// the store throttles requests, and raises it slowly afterwards.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "sstferry/transport.h"

namespace sstferry {

// Lets a thread send a request only while fewer requests than the limit are in
// progress.
class ConnectionGate {
 public:
  explicit ConnectionGate(uint32_t most) : most_(most), allowed_(most) {}

  // Begins a request: blocks until the limit allows one more. Returns false if
  // `until` has passed, or Close() was called.
  bool Enter(Clock::time_point until) {
    std::unique_lock<std::mutex> lock(mu_);
    const auto may_enter = [this] { return closed_ || inside_ < allowed_; };
    if (until == Clock::time_point::max()) {
      changed_.wait(lock, may_enter);
    } else if (!changed_.wait_until(lock, until, may_enter)) {
      return false;
    }
    if (closed_) {
      return false;
    }
    inside_++;
    return true;
  }

  // Ends a request. If `throttled`, the store asked for fewer requests, and the
  // limit is halved, but at most once in a second: later throttled answers in
  // that second belong to the same burst.
  void Leave(bool throttled, Clock::time_point now) {
    std::lock_guard<std::mutex> lock(mu_);
    inside_--;
    if (!throttled) {
      if (++good_ >= kGoodForOneMore && allowed_ < most_) {
        allowed_++;
        good_ = 0;
      }
    } else if (now - halved_ >= std::chrono::seconds(1)) {
      allowed_ = std::max(1u, allowed_ / 2);
      halved_ = now;
      good_ = 0;
    }
    changed_.notify_all();
  }

  void Close() {
    std::lock_guard<std::mutex> lock(mu_);
    closed_ = true;
    changed_.notify_all();
  }

  uint32_t allowed() const {
    std::lock_guard<std::mutex> lock(mu_);
    return allowed_;
  }

 private:
  static constexpr uint32_t kGoodForOneMore = 32;

  mutable std::mutex mu_;
  std::condition_variable changed_;
  const uint32_t most_;
  uint32_t allowed_;  // guarded by mu_, like all members below
  uint32_t inside_ = 0;
  // Number of unthrottled answers since `allowed_` changed.
  uint32_t good_ = 0;
  Clock::time_point halved_;
  bool closed_ = false;
};

}  // namespace sstferry
