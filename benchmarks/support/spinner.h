// Uses CPU and nothing else, as much as another program did.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

namespace sstferry::bench {

// The constructor starts it; the destructor stops it.
class Spinner {
 public:
  // `cores`: sum over all threads, for example 1.3. A thread that had to wait
  // for the CPU catches up later. `idle_only`: calls TakeIdleCpuOnly().
  Spinner(double cores, unsigned threads, bool idle_only = false);
  ~Spinner();
  Spinner(const Spinner&) = delete;
  Spinner& operator=(const Spinner&) = delete;

 private:
  void Spin(double share);

  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

// Returns the CPU time of the calling thread.
double ThreadCpuSeconds();

// Makes the calling thread run only while no other thread wants the CPU
// (SCHED_IDLE).
void TakeIdleCpuOnly();

}  // namespace sstferry::bench
