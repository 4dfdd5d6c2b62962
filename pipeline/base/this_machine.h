// The clock and the name of this machine.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace sstferry {

// A clock that steps back by less counts as one that stands.
inline constexpr uint64_t kMostClockBackMicros = 10'000'000;

// Returns microseconds since 1970. The clock may be set.
inline uint64_t MicrosNow() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(
          std::chrono::system_clock::now().time_since_epoch())
          .count());
}

// Returns the name of this host, for people; empty: it has none.
inline std::string HostName() {
  char name[256] = "";
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

}  // namespace sstferry
