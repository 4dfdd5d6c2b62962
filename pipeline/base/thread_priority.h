// Lowers the priority of threads, so that the application's other threads go
// first.
#pragma once

namespace sstferry {

inline constexpr int kLowerByNice = 10;

// Raises the nice value of the calling thread, and of all threads that it
// starts later, by kLowerByNice. Also gives it short CPU slices and the lowest
// level of best-effort I/O. A process without privileges cannot undo this: do
// not use it for threads that other threads wait for. Settings that the system
// refuses stay unchanged.
void LowerThreadPriority();

// Gives the calling thread, and all threads that it starts later, only the CPU
// time that no other thread wants, at once when it wants it (SCHED_IDLE), and
// the disk time that nobody wants (idle I/O class). A process without
// privileges cannot undo this: do not use it for threads that others of the
// application may wait for, such as those that hold a lock of its database.
// Settings that the system refuses stay unchanged.
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

// I/O priority of the calling thread as ioprio_get(2) returns it; -1 if it
// cannot be read.
int ThreadIoPriority();
inline constexpr int kLowestBestEffortIo = (2 << 13) | 7;
inline constexpr int kIdleIo = 3 << 13;

}  // namespace sstferry
