// Work in a process of its own, which ends as a crash does: nothing is
// destroyed, closed or flushed.
#pragma once

#include <functional>

namespace sstferry::test {

// Forks, runs `work` in the child and ends it at once with what it returned.
// Returns that; 128 + the signal that killed the child, which is SIGALRM after
// half a minute.
// REQUIRES: this process has no other threads, and has not used RocksDB, whose
// threads the child would miss.
int RunForked(const std::function<int()>& work);

}  // namespace sstferry::test
