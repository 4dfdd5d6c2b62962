#include "benchmarks/support/spinner.h"

#include <time.h>

#include "benchmarks/support/report.h"

namespace sstferry::bench {

namespace {
constexpr double kSliceSeconds = 0.001;
}  // namespace

double ThreadCpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_nsec) / 1e9;
}

Spinner::Spinner(double cores, unsigned threads) {
  for (unsigned i = 0; i < threads; ++i) {
    threads_.emplace_back([this, cores, threads] { Spin(cores / threads); });
  }
}

Spinner::~Spinner() {
  stop_ = true;
  for (std::thread& thread : threads_) thread.join();
}

void Spinner::Spin(double share) {
  const Stopwatch watch;
  while (!stop_) {
    if (ThreadCpuSeconds() < share * watch.Seconds()) {
      const double until = ThreadCpuSeconds() + kSliceSeconds;
      while (ThreadCpuSeconds() < until) {
      }
    } else {
      std::this_thread::sleep_for(
          std::chrono::duration<double>(kSliceSeconds));
    }
  }
}

}  // namespace sstferry::bench
