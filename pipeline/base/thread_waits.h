// Tells how long threads waited, from /proc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "rocksdb/slice.h"

namespace sstferry {

// Sums over threads, since they began.
struct ThreadWaits {
  uint64_t ran_micros = 0;
  uint64_t cpu_waited_micros = 0;  // ready to run, and others did
  uint32_t in_disk_wait = 0;       // threads that wait for a disk right now
};

// Maximum of the threads of a process that are looked at.
inline constexpr int kMaxThreadsSeen = 512;

// Adds what a schedstat file of a thread says: three numbers, the first two in
// nanoseconds. Returns false, and adds nothing, for another text.
bool AddSchedstat(const rocksdb::Slice& text, ThreadWaits* waits);
// True if a stat file of a thread says that it is in an uninterruptible wait.
bool IsInDiskWait(const rocksdb::Slice& stat);

// Reads the first kMaxThreadsSeen threads of a process. Returns false if they
// cannot be seen, or the process has ended.
bool ReadProcessWaits(pid_t process, ThreadWaits* waits);
// Reads the calling thread.
bool ReadOwnWaits(ThreadWaits* waits);

}  // namespace sstferry
