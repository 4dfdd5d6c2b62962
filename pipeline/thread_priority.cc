#include "pipeline/thread_priority.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace sstferry {
namespace {

// Of <linux/ioprio.h>, which not every system has.
constexpr int kOfThread = 1;
constexpr int kClassShift = 13;
constexpr int kIdleClass = 3;
constexpr int kLargestNice = 19;

bool SetThreadIoPriority(int priority) {
  return syscall(SYS_ioprio_set, kOfThread, 0, priority) == 0;
}

// False: it is lower already, or could not be told or set.
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
  LowerIo();
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
