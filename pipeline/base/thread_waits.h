// Measures how long threads waited, from /proc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "rocksdb/slice.h"

namespace sstferry {

// Sums over threads, since each thread started.
struct ThreadWaits {
  uint64_t ran_micros = 0;
  uint64_t cpu_waited_micros = 0;  // runnable, while other threads ran
  uint32_t in_disk_wait = 0;       // threads that wait for a disk now
};

// Maximum number of threads of a process that are read.
inline constexpr int kMaxThreadsSeen = 512;

// Adds the values in a thread's schedstat file: three numbers, the first two in
// nanoseconds. Returns false, and adds nothing, for any other text.
bool AddSchedstat(const rocksdb::Slice& text, ThreadWaits* waits);
// Returns true if a thread's stat file reports an uninterruptible wait.
bool IsInDiskWait(const rocksdb::Slice& stat);

// Reads the first kMaxThreadsSeen threads of a process. Returns false if they
// are not visible, or the process has ended.
bool ReadProcessWaits(pid_t process, ThreadWaits* waits);
// Reads the waits of the calling thread.
bool ReadOwnWaits(ThreadWaits* waits);

}  // namespace sstferry
