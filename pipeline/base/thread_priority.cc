#include "pipeline/base/thread_priority.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

namespace sstferry {
namespace {

// Values from <linux/ioprio.h>, which is missing on some systems.
constexpr int kOfThread = 1;
constexpr int kClassShift = 13;
constexpr int kIdleClass = 3;
constexpr int kLargestNice = 19;
constexpr uint64_t kShortSliceNanos = 100'000;

// First version of sched_attr in <linux/sched/types.h>.
struct SchedulerAttributes {
  uint32_t size = sizeof(SchedulerAttributes);
  uint32_t policy = 0;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime = 0;
  uint64_t deadline = 0;
  uint64_t period = 0;
};
static_assert(sizeof(SchedulerAttributes) == 48);
constexpr uint32_t kSchedNormal = 0;

// Requests a short time slice, so that other threads that wake up do not wait
// for milliseconds. Linux before 6.12 ignores this.
void ShortenSlice() {
  SchedulerAttributes attributes;
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) == 0 &&
      attributes.policy == kSchedNormal) {
    attributes.runtime = kShortSliceNanos;
    syscall(SYS_sched_setattr, 0, &attributes, 0);
  }
}

bool SetThreadIoPriority(int priority) {
  return syscall(SYS_ioprio_set, kOfThread, 0, priority) == 0;
}

// Lowers the thread's I/O priority. Returns false if the priority is already
// lower, or cannot be read or set.
bool LowerIo() {
  const int now = ThreadIoPriority();
  return now >= 0 && now >> kClassShift != kIdleClass &&
         SetThreadIoPriority(kLowestBestEffortIo);
}

}  // namespace

int ThreadIoPriority() {
  return static_cast<int>(syscall(SYS_ioprio_get, kOfThread, 0));
}

void LowerThreadPriority() {
  const auto thread = static_cast<id_t>(syscall(SYS_gettid));
  errno = 0;
  const int nice = getpriority(PRIO_PROCESS, thread);
  if (errno == 0) {
    setpriority(PRIO_PROCESS, thread,
                std::min(nice + kLowerByNice, kLargestNice));
  }
  ShortenSlice();
  LowerIo();
}

void StepBack() {
  constexpr sched_param kNone{};
  sched_setscheduler(0, SCHED_IDLE, &kNone);
  SetThreadIoPriority(kIdleIo);
}

LowIoScope::LowIoScope(bool applies) {
  if (applies) {
    const int before = ThreadIoPriority();
    before_ = LowerIo() ? before : -1;
  }
}

LowIoScope::~LowIoScope() {
  if (before_ >= 0) {
    SetThreadIoPriority(before_);
  }
}

}  // namespace sstferry
