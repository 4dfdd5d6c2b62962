// Makes the metrics of sstferry serve.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "sstferry/source.h"
#include "tools/sstferry/metric_set.h"

namespace sstferry {

// Counts the bytes and entries that a server has sent. Includes transfers that
// still run.
//
// Threads: all members from any thread.
class ServeMetrics {
 public:
  // `options` must outlive this object. `listen` is the server's address; as a
  // label it distinguishes the metrics of several servers on a machine.
  ServeMetrics(const ServeOptions* options, const std::string& listen);

  // Sets the times at which the server's certificates expire.
  void SetCertificates(const TlsFiles& files);
  // Counts a transfer whose connection has ended. `report` is the argument of
  // ServeOptions::on_transfer_end.
  void Report(const TransferReport& report);
  // Returns all metrics of the server, whose present state is `state`.
  MetricSet Collect(const ServerState& state);
  // Returns the same metrics and the present time as text for a metrics file.
  std::string FileText(const ServerState& state);

 private:
  // The last report of a transfer. counters_ already contain its numbers.
  struct Counted {
    TransferReport report;
    uint64_t used = 0;  // value of clock_ when the transfer was last counted
  };

  // The next three functions require that mu_ is locked.
  void Count(const TransferReport& report);
  void Count(const FollowedState& followed);
  // Sets the counters of new databases to 0, and removes the counters of
  // databases that no longer exist.
  void FollowDatabases(const ServerState& state);
  void AddDisks(const std::vector<ServedDatabase>& databases,
                MetricSet* set) const;

  const ServeOptions* const options_;
  const MetricLabels process_;  // labels of metrics that concern the server
  std::mutex mu_;
  MetricSet counters_;                       // guarded by mu_, like all below
  std::map<std::string, Counted> counted_;   // by transfer id
  uint64_t clock_ = 0;
  std::map<std::string, uint64_t> read_bytes_;  // bytes read from WALs, by
                                                // database
};

}  // namespace sstferry
