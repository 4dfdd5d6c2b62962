// Makes the metrics of sstferry follow.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

#include "sstferry/follow.h"
#include "sstferry/transport.h"
#include "tools/sstferry/metric_set.h"

namespace sstferry {

// Makes the metrics from the state that the follower has reported last.
//
// Threads: all members from any thread.
class StandbyMetrics {
 public:
  StandbyMetrics(const std::string& dir, const TlsFiles& tls);

  void Take(const StandbyState& state);
  MetricSet Collect() const;
  // Returns the same metrics and the present time as text for a metrics file.
  std::string FileText() const;

 private:
  const std::string dir_;
  const TlsFiles tls_;
  mutable std::mutex mu_;
  StandbyState state_;  // guarded by mu_, like all below
  double lag_seconds_ = 0;
  double view_age_seconds_ = 0;
  std::chrono::steady_clock::time_point told_;
};

}  // namespace sstferry
