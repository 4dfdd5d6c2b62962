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
  // kept from running catches up.
  Spinner(double cores, unsigned threads);
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

}  // namespace sstferry::bench
