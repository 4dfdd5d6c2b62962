// Limits log lines that a peer can cause as often as it likes.
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

  // Returns the line to write, truncated to kMaxLineBytes, with the number of
  // lines omitted before it. Returns nothing if this line is also omitted.
  std::optional<std::string> Admit(std::string line,
                                   Clock::time_point now = Clock::now());

 private:
  std::mutex mu_;
  Clock::time_point window_end_{};  // guarded by mu_, like all below
  uint32_t lines_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace sstferry
