// Finds the state of all jobs of a host from the records that the jobs leave in
// their directories and in their metrics files.
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
  // Time of the last success, in seconds since 1970. For a follower: the time
  // up to which it has all writes of its source. 0: never; unset: unknown.
  std::optional<uint64_t> last_good_seconds;
  // Age of a replica. For a follower: how long its oldest missing data has been
  // waiting to be received or stored. For other jobs: time since the last
  // success. Unset: unknown.
  std::optional<double> lag_seconds;
  std::string when;     // as in the file; empty: runs forever
  std::string problem;  // empty: none is known
};

// Reads the records of all jobs, in the order of the file. Changes nothing.
std::vector<JobState> ReadJobStates(const HostFile& host, std::time_t now);

// Returns kRefused if a job has a problem.
[[nodiscard]] rocksdb::Status StatusOfJobs(const HostFile& host,
                                           const std::vector<JobState>& jobs);

std::string JobStatesText(const HostFile& host,
                          const std::vector<JobState>& jobs);
std::string JobStatesJson(const HostFile& host,
                          const std::vector<JobState>& jobs);
// Returns the metrics of all jobs, for one file.
std::string JobStatesMetrics(const HostFile& host,
                             const std::vector<JobState>& jobs);

}  // namespace sstferry
