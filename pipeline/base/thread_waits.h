// Measures from /proc how long threads waited.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "rocksdb/slice.h"

namespace sstferry {

// Sums over threads, each counted from its start.
struct ThreadWaits {
  uint64_t ran_micros = 0;
  uint64_t cpu_waited_micros = 0;  // runnable, while other threads ran
  uint32_t in_disk_wait = 0;       // threads that now wait for a disk
};

// Maximum number of threads per process whose schedstat files are read.
inline constexpr int kMaxThreadsSeen = 512;

// Adds the values of a thread's schedstat file: three numbers, the first two in
// nanoseconds. Returns false and adds nothing if the text has another format.
bool AddSchedstat(const rocksdb::Slice& text, ThreadWaits* waits);
// Returns true if a thread's stat file reports an uninterruptible wait.
bool IsInDiskWait(const rocksdb::Slice& stat);

// Adds up the waits of the first kMaxThreadsSeen threads of a process. Returns
// false if the threads are not visible or the process has ended.
bool ReadProcessWaits(pid_t process, ThreadWaits* waits);
// Reads the waits of the calling thread.
bool ReadOwnWaits(ThreadWaits* waits);

}  // namespace sstferry
