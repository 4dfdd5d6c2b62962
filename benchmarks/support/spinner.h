// Takes CPU and nothing else, as much as somebody else took.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

namespace sstferry::bench {

// Begins when made, ends when destroyed.
class Spinner {
 public:
  // cores: of all threads together, 1.3 for instance. A thread that others
  // kept from running catches up. idle_only: TakeIdleCpuOnly().
  Spinner(double cores, unsigned threads, bool idle_only = false);
  ~Spinner();
  Spinner(const Spinner&) = delete;
  Spinner& operator=(const Spinner&) = delete;

 private:
  void Spin(double share);

  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

// Of the calling thread.
double ThreadCpuSeconds();

// The calling thread runs only where nobody else wants to (SCHED_IDLE), from
// now on.
void TakeIdleCpuOnly();

}  // namespace sstferry::bench
