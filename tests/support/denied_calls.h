// Makes system calls fail, as on a file system without them, or under an older
// container runtime.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace sstferry {

struct DeniedCall {
  long number = 0;  // SYS_...
  int error = 0;    // errno
  // Denies the call only if argument number `argument` has a bit of `mask`.
  int argument = 0;
  uint32_t mask = 0;  // 0: always
};

// Calls `run` in a thread in which, and in whose child processes, the `calls`
// fail. Returns false without calling `run` if the kernel filters no calls for
// this process.
[[nodiscard]] bool RunWithDenied(const std::vector<DeniedCall>& calls,
                                 const std::function<void()>& run);

// Makes the calls fail in this thread for good. Returns false as above.
[[nodiscard]] bool DenyInThisThread(const std::vector<DeniedCall>& calls);

}  // namespace sstferry
