// Metrics of sstferry serve.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "sstferry/source.h"
#include "tools/sstferry/metric_set.h"

namespace sstferry {

// Counts what a server's transfers have moved, also while they run.
//
// Threads: all members from any thread.
class ServeMetrics {
 public:
  // Borrows the options. `listen`: the address of the process, which
  // distinguishes it from others on this machine.
  ServeMetrics(const ServeOptions* options, const std::string& listen);

  // Sets the certificates that new connections use.
  void SetCertificates(const TlsFiles& files);
  // Adds a report, as passed to ServeOptions::on_transfer_end.
  void Report(const TransferReport& report);
  // Returns the metrics of a server in that state.
  MetricSet Collect(const ServerState& state);
  // Returns these metrics and the time of writing, as text for --metrics-file.
  std::string FileText(const ServerState& state);

 private:
  // The part of a transfer that is already counted.
  struct Counted {
    TransferReport report;
    uint64_t used = 0;  // clock_ at the last use
  };

  // REQUIRES for these: mu_ is locked.
  void Count(const TransferReport& report);
  void Count(const FollowedState& followed);
  // Starts counters of new databases at 0, and removes those of missing ones.
  void FollowDatabases(const ServerState& state);
  void AddDisks(const std::vector<ServedDatabase>& databases,
                MetricSet* set) const;

  const ServeOptions* const options_;
  const MetricLabels process_;  // labels of metrics without a database
  std::mutex mu_;
  MetricSet counters_;                       // guarded by mu_, like all below
  std::map<std::string, Counted> counted_;   // by transfer id
  uint64_t clock_ = 0;
  std::map<std::string, uint64_t> read_bytes_;  // bytes read from WALs, by
                                                // database
};

}  // namespace sstferry
