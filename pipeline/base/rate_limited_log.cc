#include "sstferry/rate_limited_log.h"

namespace sstferry {

std::optional<std::string> RateLimitedLog::Admit(std::string line,
                                                 Clock::time_point now) {
  std::lock_guard<std::mutex> lock(mu_);
  if (now >= window_end_) {
    window_end_ = now + kWindow;
    lines_ = 0;
  }
  if (lines_ == kLinesPerWindow) {
    ++left_out_;
    return std::nullopt;
  }
  ++lines_;
  if (line.size() > kMaxLineBytes) {
    line.resize(kMaxLineBytes);
    line += "...";
  }
  if (left_out_ > 0) {
    line += " (and " + std::to_string(left_out_) + " similar lines before it)";
  }
  left_out_ = 0;
  return line;
}

}  // namespace sstferry
