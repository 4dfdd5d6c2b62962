#include "benchmarks/support/spinner.h"

#include <sched.h>
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

void TakeIdleCpuOnly() {
  const sched_param none{};
  sched_setscheduler(0, SCHED_IDLE, &none);
}

Spinner::Spinner(double cores, unsigned threads, bool idle_only) {
  for (unsigned i = 0; i < threads; ++i) {
    threads_.emplace_back([this, cores, threads, idle_only] {
      if (idle_only) TakeIdleCpuOnly();
      Spin(cores / threads);
    });
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
