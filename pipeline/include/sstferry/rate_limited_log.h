// Log lines that a peer can cause as often as it likes: so many in a while,
// then their number.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "sstferry/transport.h"

namespace sstferry {

// Threads: any.
class RateLimitedLog {
 public:
  static constexpr uint32_t kLinesPerWindow = 50;
  static constexpr std::chrono::seconds kWindow{10};
  static constexpr size_t kMaxLineBytes = 2000;

  // The line to write, cut to kMaxLineBytes and with the number of lines that
  // were left out before it; nothing: it is left out, too.
  std::optional<std::string> Admit(std::string line,
                                   Clock::time_point now = Clock::now());

 private:
  std::mutex mu_;
  Clock::time_point window_end_{};  // under mu_, and all below
  uint32_t lines_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace sstferry
