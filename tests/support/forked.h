// Runs work in a process of its own, which ends like a crash: nothing is
// destroyed, closed or flushed.
#pragma once

#include <functional>

namespace sstferry::test {

// Forks, runs `work` in the child and ends the child at once with the returned
// exit code. Returns that code, or 128 + the signal that killed the child.
// Signals kill the child after 5 s of CPU time or after 10 minutes.
// REQUIRES: this process has no other threads, and has not used RocksDB, whose
// threads the child would miss.
int RunForked(const std::function<int()>& work);

}  // namespace sstferry::test
