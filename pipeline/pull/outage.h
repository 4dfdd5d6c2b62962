// Says once that a source was lost, and once that it is there again, however
// many connections that concerns.
#pragma once

#include <chrono>
#include <mutex>
#include <string>

#include "sstferry/options.h"

namespace sstferry {

// An outage begins with the loss of a connection and ends when all that were
// lost are there again. A connection that is older than the end of an outage
// belongs to that outage: its loss is only noticed late.
//
// Threads: any.
class Outage {
 public:
  using Clock = std::chrono::steady_clock;

  // `log` may be null: nothing is said.
  explicit Outage(LogFunction log) : log_(std::move(log)) {}

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
  bool told_ = false;          // under mu_: of the outage at hand
  Clock::time_point began_{};  // under mu_
  Clock::time_point ended_{};  // under mu_: the last outage
};

}  // namespace sstferry
