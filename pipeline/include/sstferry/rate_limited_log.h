// Limits how many log lines a peer can cause.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "sstferry/transport.h"

namespace sstferry {

// Admits kLinesPerWindow lines per window, and counts the others.
//
// Threads: any.
class RateLimitedLog {
 public:
  static constexpr uint32_t kLinesPerWindow = 50;
  static constexpr std::chrono::seconds kWindow{10};
  static constexpr size_t kMaxLineBytes = 2000;

  // Returns the line to write, truncated to kMaxLineBytes. If lines were
  // omitted before it, it ends with their number. Returns nothing if this line
  // must be omitted, too.
  std::optional<std::string> Admit(std::string line,
                                   Clock::time_point now = Clock::now());

 private:
  std::mutex mu_;
  // End of the current window. mu_ guards this and all members below.
  Clock::time_point window_end_{};
  uint32_t lines_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace sstferry
