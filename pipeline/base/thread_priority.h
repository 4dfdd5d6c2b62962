// Lowers the priority of threads, so that other threads of the application run
// first.
#pragma once

namespace sstferry {

inline constexpr int kLowerByNice = 10;

// Lowers the priority of the calling thread, and of all threads that it starts
// later. Raises their nice value by kLowerByNice, and sets short CPU slices and
// the lowest best-effort I/O level. An unprivileged process cannot raise the
// priority again, so do not use this function for threads that other threads
// wait for. Ignores failures: a setting that the system rejects stays
// unchanged.
void LowerThreadPriority();

// Lets the calling thread, and all threads that it starts later, run only while
// no other thread needs the CPU (SCHED_IDLE) or the disk (idle I/O class). An
// unprivileged process cannot raise the priority again, so do not use this
// function for threads that the application may wait for. For example, a thread
// may hold a lock of the application's database. Ignores failures: a setting
// that the system rejects stays unchanged.
void StepBack();

// Lowers only the I/O priority of the calling thread, for the lifetime of this
// object.
class LowIoScope {
 public:
  explicit LowIoScope(bool applies = true);
  ~LowIoScope();
  LowIoScope(const LowIoScope&) = delete;
  LowIoScope& operator=(const LowIoScope&) = delete;

 private:
  int before_ = -1;  // priority to restore; -1: none
};

// Returns the calling thread's I/O priority in the format of ioprio_get(2); -1
// if it cannot be read.
int ThreadIoPriority();
inline constexpr int kLowestBestEffortIo = (2 << 13) | 7;
inline constexpr int kIdleIo = 3 << 13;

}  // namespace sstferry
