// Threads that give way to what an application serves with the others.
#pragma once

namespace sstferry {

inline constexpr int kLowerByNice = 10;

// The calling thread, and all it starts from now on, gets so much nicer, short
// slices of CPU, and the lowest level of best-effort I/O. Without a privilege nothing takes that
// back: not for threads that others wait for. What the system refuses stays as
// it was.
void LowerThreadPriority();

// The I/O of the calling thread alone is at that level for as long as this
// lives.
class LowIoScope {
 public:
  explicit LowIoScope(bool applies = true);
  ~LowIoScope();
  LowIoScope(const LowIoScope&) = delete;
  LowIoScope& operator=(const LowIoScope&) = delete;

 private:
  int before_ = -1;  // -1: nothing to take back
};

// Of the calling thread, as ioprio_get(2) says it; -1: it cannot be told.
int ThreadIoPriority();
inline constexpr int kLowestBestEffortIo = (2 << 13) | 7;

}  // namespace sstferry
