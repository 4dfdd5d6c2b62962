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
  // Borrows the options. `listen`: where the process accepts connections,
  // which tells it from others of this machine.
  ServeMetrics(const ServeOptions* options, const std::string& listen);

  // Takes the certificates that new connections get.
  void SetCertificates(const TlsFiles& files);
  // Takes a report as ServeOptions::on_transfer_end gets it.
  void Report(const TransferReport& report);
  // Metrics of a server that is in that state.
  MetricSet Collect(const ServerState& state);
  // The same as text, for a file that says when it was written.
  std::string FileText(const ServerState& state);

 private:
  // Tells what of a transfer is in the counters already.
  struct Counted {
    TransferReport report;
    uint64_t used = 0;  // clock_ at the last use
  };

  // REQUIRES, of these: mu_ held.
  void Count(const TransferReport& report);
  void Count(const FollowedState& followed);
  // Counts from 0 what is served from now on, and forgets what is gone.
  void FollowDatabases(const ServerState& state);
  void AddDisks(const std::vector<ServedDatabase>& databases,
                MetricSet* set) const;

  const ServeOptions* const options_;
  const MetricLabels process_;  // labels of what is not of one database
  std::mutex mu_;
  MetricSet counters_;                       // under mu_, and all below
  std::map<std::string, Counted> counted_;   // by transfer id
  uint64_t clock_ = 0;
  std::map<std::string, uint64_t> read_bytes_;  // of WALs, by database
};

}  // namespace sstferry
