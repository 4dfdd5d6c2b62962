// Measures from /proc how long threads waited.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "rocksdb/slice.h"

namespace sstferry {

// The times of one or more threads, added up, since each thread was started.
struct ThreadWaits {
  uint64_t ran_micros = 0;
  uint64_t cpu_waited_micros = 0;  // waited for a CPU
  uint32_t in_disk_wait = 0;       // number of threads that wait for a disk now
};

// Maximum number of threads per process whose schedstat files are read.
inline constexpr int kMaxThreadsSeen = 512;

// Adds a thread's running time and waiting time to *waits. `text` is the
// contents of the thread's schedstat file: three numbers, of which the first
// two are these times in nanoseconds. Returns false and adds nothing if the
// text has another format.
bool AddSchedstat(const rocksdb::Slice& text, ThreadWaits* waits);
// Returns true if the thread is in an uninterruptible wait. `stat` is the
// contents of the thread's stat file.
bool IsInDiskWait(const rocksdb::Slice& stat);

// Sets *waits to the sums over the first kMaxThreadsSeen threads of a process.
// Returns false if the process has ended or its threads are not visible.
bool ReadProcessWaits(pid_t process, ThreadWaits* waits);
// Reads the waits of the calling thread.
bool ReadOwnWaits(ThreadWaits* waits);

}  // namespace sstferry
