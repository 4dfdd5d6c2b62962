// The clock and the name of this machine.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace sstferry {

// Maximum step back of the clock, in microseconds, that is tolerated. After
// such a step, the clock is treated as if it had stopped.
inline constexpr uint64_t kMostClockBackMicros = 10'000'000;

// Returns the time in microseconds since 1970. The clock may jump, even
// backward.
inline uint64_t MicrosNow() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(
          std::chrono::system_clock::now().time_since_epoch())
          .count());
}

// Returns the microseconds since `start`.
inline uint64_t MicrosSince(std::chrono::steady_clock::time_point start) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(
          std::chrono::steady_clock::now() - start)
          .count());
}

// Returns this host's name, for display. Returns an empty string if it is
// unknown.
inline std::string HostName() {
  char name[256] = "";
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

}  // namespace sstferry
