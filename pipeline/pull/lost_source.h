// Says once that a source was lost, and once that it is there again, however
// many connections that concerns.
#pragma once

#include <chrono>
#include <mutex>
#include <string>

#include "sstferry/options.h"

namespace sstferry {

// The source is lost from the loss of a connection until all lost connections
// are there again. A connection that is older than that end was lost with the
// others, and its loss is only noticed late.
//
// Threads: any.
class LostSource {
 public:
  using Clock = std::chrono::steady_clock;

  // `log` may be null: nothing is said.
  explicit LostSource(LogFunction log) : log_(std::move(log)) {}

  // Counts a connection as lost. `what` names it ("lane 2"), `since` is when it
  // was made.
  void Lost(const std::string& what, Clock::time_point since,
            const std::string& reason);
  // Counts a lost connection as made again.
  void Back(const std::string& what);

 private:
  void Log(LogLevel level, const std::string& text) const;

  const LogFunction log_;
  std::mutex mu_;
  int lost_ = 0;               // under mu_: connections
  bool told_ = false;          // under mu_: of the loss at hand
  Clock::time_point began_{};  // under mu_
  Clock::time_point ended_{};  // under mu_: the last loss
};

}  // namespace sstferry
