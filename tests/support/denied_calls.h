// System calls that fail, as on a file system that has them not, or under an
// older container runtime.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace sstferry {

struct DeniedCall {
  long number = 0;  // SYS_...
  int error = 0;    // errno
  // Denies the call only if its argument has one of these bits.
  int argument = 0;
  uint32_t mask = 0;  // 0: always
};

// Runs `run` in a thread whose calls, and those of the processes that it
// starts, fail like this. Returns false, without a run, if the kernel filters no
// calls for this process.
[[nodiscard]] bool RunWithDenied(const std::vector<DeniedCall>& calls,
                                 const std::function<void()>& run);

}  // namespace sstferry
