// The JSON object of one run of bench_serving.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "benchmarks/serving_refresh.h"
#include "benchmarks/support/foreground.h"
#include "rocksdb/status.h"

namespace sstferry::bench {

// Resources used up to the start of a phase; CPU in seconds.
struct UsagePoint {
  double process = 0;
  double load = 0;       // the part of it in the load's own threads
  double load_wait = 0;  // those threads, ready to run while others ran
  double source = 0;     // the source's process
  double machine = 0;    // all processes
  uint64_t read_bytes = 0;     // by the process, from the disk itself
  uint64_t written_bytes = 0;  // by the process, to files or sockets
};

// Facts about the tables of the read family.
struct TableFacts {
  std::map<int, uint64_t> files_per_level;
  uint64_t bytes = 0;
  uint64_t entries = 0;
  uint64_t deletions = 0;
  uint64_t range_deletions = 0;
};
TableFacts TableFactsOf(const LoadTargets& targets);

struct ServedRun {
  const Foreground* load = nullptr;
  const PhaseTable* phases = nullptr;  // the last one, "end", is not a phase
  std::vector<UsagePoint> usage;       // one per phase
  std::map<std::string, TableFacts> shapes;
  std::vector<IngestCall> ingest_calls;
  // Summary of the refresh; empty: there was no refresh.
  std::string summary_json;
  uint64_t longest_call_micros = 0;
};

// Writes the report whether or not the run succeeded; it contains `status`.
[[nodiscard]] rocksdb::Status WriteReport(const std::string& path,
                                          const LoadOptions& load,
                                          const ServedRun& served,
                                          const rocksdb::Status& status);

}  // namespace sstferry::bench
