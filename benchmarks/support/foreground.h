// The load that a database serves while it is copied or refreshed.
//
// Four of five reads and scans use a family whose keys all exist and that the
// load never writes; one of five uses the family that the load writes.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/support/latency.h"
#include "benchmarks/support/workload.h"
#include "rocksdb/db.h"

namespace sstferry::bench {

struct LoadOptions {
  Mix mix;
  bool zipfian = true;
  bool closed_loop = false;   // as fast as possible, ignoring rate_per_sec
  double rate_per_sec = 2000;  // operations of all threads together
  bool fixed_spacing = false;  // instead of a Poisson process
  uint64_t threads = 2;
  uint64_t scan_entries = 50;
  ValueSizes values;
  uint64_t seed = 1;
  // The read family contains FillKey(read_seed, 0 to read_keys - 1, read_keys).
  uint64_t read_keys = 0;
  uint64_t read_seed = 1;
  // Number of entries in the written family before the load begins.
  uint64_t local_keys = 100'000;
  uint64_t heartbeat_micros = 1000;  // 0: none
};

struct LoadTargets {
  rocksdb::DB* db = nullptr;
  rocksdb::ColumnFamilyHandle* read = nullptr;
  rocksdb::ColumnFamilyHandle* local = nullptr;
  rocksdb::ColumnFamilyHandle* heartbeat = nullptr;
};

// A Put of the heartbeat; times by the clock of the PhaseTable.
struct HeartbeatPut {
  int64_t begin = 0;
  int64_t nanos = 0;
};

// Fills the written family with options.local_keys entries.
[[nodiscard]] rocksdb::Status FillLocal(const LoadOptions& options,
                                        const LoadTargets& targets);

// The constructor starts the threads; call Stop() before the destructor.
// Borrows its arguments. Begins with phase 0 of `phases`, which must have
// begun.
class Foreground {
 public:
  Foreground(const LoadOptions& options, const LoadTargets& targets,
             const PhaseTable* phases);
  ~Foreground();
  Foreground(const Foreground&) = delete;
  Foreground& operator=(const Foreground&) = delete;

  // CPU use of the load's threads so far. REQUIRES: Stop() was not called.
  struct Usage {
    double cpu_seconds = 0;
    double wait_seconds = 0;  // ready to run while other threads ran
  };
  Usage usage() const;
  // Joins the threads; returns their first error. May be called twice.
  [[nodiscard]] rocksdb::Status Stop();

  // Call the members below only after Stop().
  const LatencyRecorder& recorder() const { return sum_; }
  // Returns the number of gets of the read family that found nothing.
  uint64_t missing() const { return missing_; }
  // Returns the puts that took kLongPutNanos or more, in order.
  const std::vector<HeartbeatPut>& long_puts() const { return long_puts_; }

  static constexpr int64_t kLongPutNanos = 200'000;

 private:
  struct Worker {
    Random random;
    LatencyRecorder recorder;
    rocksdb::Status status;
    uint64_t missing = 0;
    std::string key;
    std::string value;
    rocksdb::PinnableSlice found;
    std::atomic<int> id{0};  // thread id of the kernel
    std::thread thread;
  };

  void Run(Worker* worker);
  void Beat(Worker* worker);
  // Performs one operation and returns its kind.
  OperationKind Operate(Worker* worker);
  void Read(Worker* worker);
  void Scan(Worker* worker);
  void Write(Action action, Worker* worker);
  // Sets worker->key; returns true if the key is in the read family.
  bool ChooseKey(Worker* worker);
  // Chooses an existing entry of the written family, mostly among the newest.
  void ChooseLocal(Worker* worker);

  const LoadOptions options_;
  const LoadTargets targets_;
  const PhaseTable* const phases_;
  const RankChooser read_ranks_;
  const RankChooser local_ranks_;
  std::atomic<uint64_t> local_begin_{0};  // existing entries: [begin, end)
  std::atomic<uint64_t> local_end_;
  std::atomic<bool> stop_{false};
  std::vector<std::unique_ptr<Worker>> workers_;
  LatencyRecorder sum_;
  rocksdb::Status status_;
  uint64_t missing_ = 0;
  std::vector<HeartbeatPut> long_puts_;
};

}  // namespace sstferry::bench
