// Measures how long a call blocked its thread while it waited for the other
// side of a connection, for a rate limit, or for a CPU.
#pragma once

#include <time.h>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace sstferry {

// Measures a scope: adds to *micros the time for which the calling thread did
// not run. Subtracts the thread's CPU time, because copying data into a socket
// is work and not waiting.
class BlockedScope {
 public:
  explicit BlockedScope(std::atomic<uint64_t>* micros)
      : micros_(micros), since_nanos_(NotRunningNanos()) {}
  ~BlockedScope() {
    const int64_t nanos = NotRunningNanos() - since_nanos_;
    if (nanos > 0) {
      micros_->fetch_add(static_cast<uint64_t>(nanos) / 1000,
                         std::memory_order_relaxed);
    }
  }
  BlockedScope(const BlockedScope&) = delete;
  BlockedScope& operator=(const BlockedScope&) = delete;

 private:
  static int64_t NotRunningNanos() {
    timespec cpu{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    const int64_t wall =
        std::chrono::duration_cast<std::chrono::nanoseconds>(
            std::chrono::steady_clock::now().time_since_epoch())
            .count();
    return wall - (int64_t{1'000'000'000} * cpu.tv_sec + cpu.tv_nsec);
  }
  std::atomic<uint64_t>* const micros_;
  const int64_t since_nanos_;
};

}  // namespace sstferry
