// Keeps the first failure of an operation that runs on several threads. That
// failure becomes the operation's result and stops all threads.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <utility>

#include "pipeline/base/stop_signal.h"
#include "pipeline/pull/failure_place.h"
#include "rocksdb/status.h"

namespace sstferry {

// The first failure of one operation. Threads: any.
class FirstFailure {
 public:
  // `close` is called once, by the thread that fails first and after failed()
  // is true. It must wake all threads that wait.
  explicit FirstFailure(std::function<void()> close)
      : close_(std::move(close)) {}

  // Keeps the first failure and its place; later failures change nothing.
  void Set(const rocksdb::Status& status, const FailurePlace& place) {
    {
      std::lock_guard<std::mutex> lock(mu_);
      if (failed_) {
        return;
      }
      status_ = status;
      place_ = place;
      failed_ = true;
    }
    stop_.Stop();
    close_();
  }

  bool failed() const { return failed_; }
  rocksdb::Status status() const {  // OK if nothing failed
    std::lock_guard<std::mutex> lock(mu_);
    return status_;
  }
  FailurePlace place() const {
    std::lock_guard<std::mutex> lock(mu_);
    return place_;
  }
  // Returns the signal that ends waits after a failure.
  StopSignal* stop() { return &stop_; }

 private:
  const std::function<void()> close_;
  StopSignal stop_;
  std::atomic<bool> failed_{false};
  mutable std::mutex mu_;
  rocksdb::Status status_;  // under mu_
  FailurePlace place_;      // under mu_
};

}  // namespace sstferry
