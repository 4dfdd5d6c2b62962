// Lowers the priority of threads, so that other threads of the application run
// first.
#pragma once

namespace sstferry {

inline constexpr int kLowerByNice = 10;

// Raises the nice value of the calling thread, and of all threads that it
// starts later, by kLowerByNice. Also sets short CPU slices and the lowest
// best-effort I/O level. Unprivileged processes cannot undo this, so do not use
// it for threads that other threads wait for. Settings that the system rejects
// stay unchanged.
void LowerThreadPriority();

// Lets the calling thread, and all threads that it starts later, run only while
// no other thread wants the CPU (SCHED_IDLE) or the disk (idle I/O class).
// Unprivileged processes cannot undo this, so do not use it for threads that
// the application may wait for, such as threads that hold a lock of its
// database. Settings that the system rejects stay unchanged.
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
