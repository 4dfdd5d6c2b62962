// Finds the state of all jobs of a host file, for sstferry status --all. Reads
// the replicas, standbys and metrics files that the jobs write.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "rocksdb/status.h"
#include "tools/sstferry/host_file.h"

namespace sstferry {

struct JobState {
  std::string database;
  JobKind kind = JobKind::kServe;
  // The time of the job's last success, in seconds since 1970. For a follower,
  // it is the time up to which the target has all writes of the source. For a
  // server, it is the time at which it wrote its metrics last. 0 means never.
  // Unset if unknown.
  std::optional<uint64_t> last_good_seconds;
  // The age of a replica's or a standby's data. For a follower into an archive,
  // how long data has been waiting to be received or stored. For an archive
  // job, the time since its last success. Unset if unknown.
  std::optional<double> lag_seconds;
  std::string when;     // as in the host file; empty if the job runs forever
  std::string problem;  // empty if no problem is known
};

// Returns the states of all jobs, in the order of host.jobs. Changes nothing.
std::vector<JobState> ReadJobStates(const HostFile& host, std::time_t now);

// Returns kRefused if at least one job has a problem, otherwise OK.
[[nodiscard]] rocksdb::Status StatusOfJobs(const HostFile& host,
                                           const std::vector<JobState>& jobs);

std::string JobStatesText(const HostFile& host,
                          const std::vector<JobState>& jobs);
std::string JobStatesJson(const HostFile& host,
                          const std::vector<JobState>& jobs);
// Returns the text of one metrics file with the states of all jobs.
std::string JobStatesMetrics(const HostFile& host,
                             const std::vector<JobState>& jobs);

}  // namespace sstferry
