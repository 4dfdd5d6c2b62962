// Limits the bytes per second that any number of threads send together.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

#include "rocksdb/status.h"

namespace sstferry {

// Number of bytes that one sender takes in one turn from a bucket that several
// senders share. The number is small, so that each sender sends often.
// Otherwise, while a sender waits for the others, its peer would count it as
// silent.
inline constexpr uint64_t kTurnBytes = 64u << 10;

// Makes threads wait until they may send bytes. A token is the permission to
// send one byte. The bucket has room for the tokens of a tenth of a second, so
// that a burst after a pause is short. The bucket serves requests in the order
// of arrival. A request that is larger than the bucket waits until the bucket
// is full, and is then served on credit. Later requests wait until new tokens
// have paid the debt.
//
// Threads: all members from any thread.
class TokenBucket {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  // A rate of 0 means that there is no limit. Tests pass their own clock as
  // `now`.
  explicit TokenBucket(uint64_t bytes_per_sec,
                       std::function<TimePoint()> now = nullptr);

  // Blocks until `bytes` bytes may be sent, and takes their tokens. Returns
  // Aborted (kCancelled) after Close().
  [[nodiscard]] rocksdb::Status Take(uint64_t bytes);
  // Returns how long Take() would wait now. Takes no tokens.
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
  uint64_t queued_bytes_ = 0;  // sum of the bytes of all waiting requests
  bool closed_ = false;
};

}  // namespace sstferry
