// Logs once that a source was lost, and once that it is back, even if the
// source has many connections.
#pragma once

#include <chrono>
#include <mutex>
#include <string>

#include "sstferry/options.h"

namespace sstferry {

// Tracks the lost connections of one source. The source counts as lost from the
// first lost connection until all lost connections are back. A connection that
// was made before that moment may be reported as lost afterwards. It was lost
// together with the others, so it is not logged as a new loss.
//
// Threads: any.
class LostSource {
 public:
  using Clock = std::chrono::steady_clock;

  // `log` may be null.
  explicit LostSource(LogFunction log) : log_(std::move(log)) {}

  // Counts a connection as lost. `what` names the connection, such as "lane 2".
  // `since` is the time at which it was made.
  void Lost(const std::string& what, Clock::time_point since,
            const std::string& reason);
  // Counts a lost connection as back.
  void Back(const std::string& what);

 private:
  void Log(LogLevel level, const std::string& text) const;

  const LogFunction log_;
  std::mutex mu_;
  int lost_ = 0;               // connections; under mu_
  bool told_ = false;          // the current loss was logged; under mu_
  Clock::time_point began_{};  // start of the current loss; under mu_
  Clock::time_point ended_{};  // end of the last loss; under mu_
};

}  // namespace sstferry
