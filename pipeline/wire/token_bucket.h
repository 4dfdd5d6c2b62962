// A limit of bytes per second that any number of threads share.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

#include "rocksdb/status.h"

namespace sstferry {

// Makes threads wait until they may send bytes. Each token is one byte. The
// bucket has room for the bytes of a tenth of a second, so a burst after a
// pause stays small. Requests are served in the order of arrival. A request
// larger than the bucket is served once the bucket is full, and leaves a debt;
// later requests wait until new tokens have paid it.
//
// Threads: all members from any thread.
class TokenBucket {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  // A rate of 0 means no limit. Tests pass `now`.
  explicit TokenBucket(uint64_t bytes_per_sec,
                       std::function<TimePoint()> now = nullptr);

  // Blocks until `bytes` may be sent. Aborted (kCancelled) after Close().
  [[nodiscard]] rocksdb::Status Take(uint64_t bytes);
  // Returns the time that Take() would wait now; takes nothing.
  std::chrono::microseconds DelayFor(uint64_t bytes);

  void SetRate(uint64_t bytes_per_sec);
  uint64_t bytes_per_sec() const;
  void Close();

 private:
  TimePoint Now() const;
  // REQUIRES: mu_ is locked.
  void Refill();
  std::chrono::microseconds WaitFor(double bytes) const;

  const std::function<TimePoint()> now_;
  mutable std::mutex mu_;
  std::condition_variable changed_;
  uint64_t bytes_per_sec_;
  double tokens_ = 0;
  TimePoint last_refill_;
  uint64_t next_ticket_ = 0;
  uint64_t serving_ = 0;
  uint64_t queued_bytes_ = 0;  // sum over waiting requests
  bool closed_ = false;
};

}  // namespace sstferry
