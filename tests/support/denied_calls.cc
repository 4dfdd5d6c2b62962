#include "tests/support/denied_calls.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include <cstddef>
#include <thread>

namespace sstferry {

// Installs a seccomp filter for the calling thread and its later children.
bool DenyInThisThread(const std::vector<DeniedCall>& calls) {
  const auto load = [](size_t offset) {
    return sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0,
                       static_cast<uint32_t>(offset)};
  };
  const sock_filter allow{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
  std::vector<sock_filter> code;
  for (const DeniedCall& call : calls) {
    const bool always = call.mask == 0;
    code.push_back(load(offsetof(seccomp_data, nr)));
    code.push_back({BPF_JMP | BPF_JEQ | BPF_K, 0,
                    static_cast<uint8_t>(always ? 1 : 3),
                    static_cast<uint32_t>(call.number)});
    if (!always) {
      // Loads the lower half of the argument, which comes first in little
      // endian.
      code.push_back(load(offsetof(seccomp_data, args) +
                          8 * static_cast<size_t>(call.argument)));
      code.push_back({BPF_JMP | BPF_JSET | BPF_K, 0, 1, call.mask});
    }
    code.push_back({BPF_RET | BPF_K, 0, 0,
                    SECCOMP_RET_ERRNO | static_cast<uint32_t>(call.error)});
  }
  code.push_back(allow);
  const sock_fprog program{static_cast<uint16_t>(code.size()), code.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

bool RunWithDenied(const std::vector<DeniedCall>& calls,
                   const std::function<void()>& run) {
  bool installed = false;
  std::thread([&] {
    installed = DenyInThisThread(calls);
    if (installed) run();
  }).join();
  return installed;
}

}  // namespace sstferry
