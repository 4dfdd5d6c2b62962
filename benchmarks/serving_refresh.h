// The refresh that bench_serving makes of its served database.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/support/flags.h"
#include "benchmarks/support/latency.h"
#include "rocksdb/listener.h"
#include "sstferry/target.h"

namespace sstferry::bench {

// The refresh's options on the command line; wrong ones end the program with
// exit code 2. read_keys and read_seed: as in LoadOptions, for --share.
struct RefreshOptions {
  PullOptions pull;
  int nice = 0;  // nice value of the refresh's threads
};
RefreshOptions ReadRefreshOptions(Flags* flags, uint64_t read_keys,
                                  uint64_t read_seed);

// The end of a call of IngestExternalFiles, as RocksDB reports it.
struct IngestCall {
  Clock::time_point end;
  uint64_t files = 0;
};

// Threads: any.
class IngestLog : public rocksdb::EventListener {
 public:
  void OnExternalFileIngested(
      rocksdb::DB* db, const rocksdb::ExternalFileIngestionInfo& info) override;
  std::vector<IngestCall> calls() const;

 private:
  mutable std::mutex mutex_;
  std::vector<IngestCall> calls_;
};

// Runs in its own thread, starting with Start().
class RefreshRun {
 public:
  RefreshRun(const RefreshOptions& options, const OpenReplica& replica);
  ~RefreshRun();
  RefreshRun(const RefreshRun&) = delete;
  RefreshRun& operator=(const RefreshRun&) = delete;

  void Start();
  // Returns "prepare" (connecting, snapshot, plan), "transfer", "publish"
  // (totals and, with PullMode::kRefresh, the only ingestion), or "compaction";
  // "" after the end.
  std::string Stage() const;
  // Waits for the end.
  [[nodiscard]] rocksdb::Status Join();
  // After Join().
  const Summary& summary() const { return summary_; }

 private:
  const int nice_;
  const std::unique_ptr<Operation> operation_;
  std::atomic<bool> ended_{false};
  rocksdb::Status status_;
  Summary summary_;
  std::thread thread_;
};

}  // namespace sstferry::bench
