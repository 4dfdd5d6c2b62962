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

// What was used so far when a phase began; CPU in seconds.
struct UsagePoint {
  double process = 0;
  double load = 0;       // of that, the load's own threads
  double load_wait = 0;  // those threads, ready to run while others ran
  double source = 0;     // the source's process
  double machine = 0;    // everybody
  uint64_t read_bytes = 0;     // by the process, from the disk itself
  uint64_t written_bytes = 0;  // by the process, to files or sockets
};

// The read family's tables.
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
  const PhaseTable* phases = nullptr;  // the last one, "end", is none
  std::vector<UsagePoint> usage;       // a phase each
  std::map<std::string, TableFacts> shapes;
  std::vector<IngestCall> ingest_calls;
  // Of the refresh; empty: there was none.
  std::string summary_json;
  uint64_t longest_call_micros = 0;
};

// Whatever became of the run: status says.
[[nodiscard]] rocksdb::Status WriteReport(const std::string& path,
                                          const LoadOptions& load,
                                          const ServedRun& served,
                                          const rocksdb::Status& status);

}  // namespace sstferry::bench
