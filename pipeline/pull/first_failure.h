// The first failure of an operation that runs on several threads: it wins, and
// it stops everything.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "pipeline/base/stop_signal.h"
#include "rocksdb/status.h"

namespace sstferry {

// Threads: any.
class FirstFailure {
 public:
  // `close` is called once, by the thread that fails first and after failed()
  // is true. It ends what other threads wait for.
  explicit FirstFailure(std::function<void()> close)
      : close_(std::move(close)) {}

  // Keeps the first failure; later ones change nothing. `where` says which side
  // or part saw it.
  void Set(const rocksdb::Status& status, const std::string& where) {
    {
      std::lock_guard<std::mutex> lock(mu_);
      if (failed_) {
        return;
      }
      status_ = status;
      where_ = where;
      failed_ = true;
    }
    stop_.Stop();
    close_();
  }

  bool failed() const { return failed_; }
  rocksdb::Status status() const {  // OK: nothing failed
    std::lock_guard<std::mutex> lock(mu_);
    return status_;
  }
  std::string where() const {
    std::lock_guard<std::mutex> lock(mu_);
    return where_;
  }
  // Ends waits once something failed.
  StopSignal* stop() { return &stop_; }

 private:
  const std::function<void()> close_;
  StopSignal stop_;
  std::atomic<bool> failed_{false};
  mutable std::mutex mu_;
  rocksdb::Status status_;  // under mu_
  std::string where_;       // under mu_
};

}  // namespace sstferry
