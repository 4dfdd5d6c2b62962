#include "pipeline/base/thread_priority.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "tests/support/catch.h"

namespace sstferry::thread_priority_test {
namespace {

int Nice() {
  return getpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)));
}

TEST_CASE("A lowered priority lasts, and affects only its thread",
          "[pipeline][priority]") {
  const int nice = Nice();
  const int io = ThreadIoPriority();
  int lowered_nice = 0;
  int lowered_io = 0;
  std::thread([&] {
    LowerThreadPriority();
    {
      const LowIoScope scope;
    }
    lowered_nice = Nice();
    lowered_io = ThreadIoPriority();
  }).join();
  REQUIRE(lowered_nice == std::min(nice + kLowerByNice, 19));
  REQUIRE(lowered_io == kLowestBestEffortIo);
  REQUIRE(Nice() == nice);
  REQUIRE(ThreadIoPriority() == io);
}

TEST_CASE("A thread that steps back uses only idle CPU and I/O, others do not",
          "[pipeline][priority]") {
  const int io = ThreadIoPriority();
  const int policy = sched_getscheduler(0);
  std::thread([] {
    StepBack();
    CHECK(sched_getscheduler(0) == SCHED_IDLE);
    CHECK(ThreadIoPriority() == kIdleIo);
  }).join();
  REQUIRE(sched_getscheduler(0) == policy);
  REQUIRE(ThreadIoPriority() == io);
}

TEST_CASE("The I/O priority of a thread is low only inside the scope",
          "[pipeline][priority]") {
  std::thread([&] {
    syscall(SYS_ioprio_set, 1, 0, (2 << 13) | 2);
    {
      const LowIoScope none(false);
      CHECK(ThreadIoPriority() == ((2 << 13) | 2));
      const LowIoScope scope;
      CHECK(ThreadIoPriority() == kLowestBestEffortIo);
    }
    CHECK(ThreadIoPriority() == ((2 << 13) | 2));
    syscall(SYS_ioprio_set, 1, 0, kIdleIo);
    {
      const LowIoScope scope;
      CHECK(ThreadIoPriority() == kIdleIo);
    }
    CHECK(ThreadIoPriority() == kIdleIo);
  }).join();
}

}  // namespace
}  // namespace sstferry::thread_priority_test
