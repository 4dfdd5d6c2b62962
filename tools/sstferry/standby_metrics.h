// Metrics of sstferry follow.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

#include "sstferry/follow.h"
#include "sstferry/transport.h"
#include "tools/sstferry/metric_set.h"

namespace sstferry {

// Shows how a standby is, as its follower told last.
//
// Threads: all members from any thread.
class StandbyMetrics {
 public:
  StandbyMetrics(const std::string& dir, const TlsFiles& tls);

  void Take(const StandbyState& state);
  MetricSet Collect() const;
  // The same as text, for a file that says when it was written.
  std::string FileText() const;

 private:
  const std::string dir_;
  const TlsFiles tls_;
  mutable std::mutex mu_;
  StandbyState state_;  // under mu_, and all below
  double lag_seconds_ = 0;
  std::chrono::steady_clock::time_point told_;
};

}  // namespace sstferry
