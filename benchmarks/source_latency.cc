// Serves a database while another process copies it: reads and writes at a
// fixed rate, each at its intended time even if the previous one was late.
// Latency counts from the intended time, so that a stall shows in all
// operations that it delayed.
//
//   bench_source_latency --db DIR --rate 2000 [--read-percent 90]
//       [--threads 2] [--seconds 60] [--csv FILE] [--seed 1] [--value-bytes N]
//
// Prints "serving" once the load runs. Ends after --seconds or at SIGTERM. The
// CSV has one row per second:
// unix_time,operations,p50_us,p99_us,p999_us,max_us.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/support/content.h"
#include "benchmarks/support/database.h"
#include "benchmarks/support/flags.h"
#include "benchmarks/support/report.h"
#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/db.h"

namespace sstferry::bench {
namespace {

using Clock = std::chrono::steady_clock;
using rocksdb::Status;

std::atomic<bool> stop{false};

struct LoadOptions {
  std::string db;
  std::string csv;
  uint64_t rate_per_sec = 2000;  // operations of all threads together
  uint64_t read_percent = 90;
  uint64_t threads = 2;
  uint64_t seconds = 3600;
  uint64_t seed = 1;
  uint64_t value_bytes = 256;
};

// Latencies in microseconds, by the second of the intended time. Threads: any.
class LatencySeries {
 public:
  void Add(const std::vector<std::pair<uint64_t, float>>& samples) {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [second, micros] : samples) {
      if (seconds_.size() <= second) seconds_.resize(second + 1);
      seconds_[second].push_back(micros);
    }
  }

  // REQUIRES: no thread calls Add() at the same time.
  Status WriteCsv(const std::string& path, double unix_start) {
    FILE* file = std::fopen(path.c_str(), "w");
    if (file == nullptr) return Status::IOError(path, "cannot be written");
    std::fprintf(file, "unix_time,operations,p50_us,p99_us,p999_us,max_us\n");
    for (size_t i = 0; i < seconds_.size(); ++i) {
      std::vector<float>& one = seconds_[i];
      std::sort(one.begin(), one.end());
      std::fprintf(file, "%.1f,%zu,%.1f,%.1f,%.1f,%.1f\n",
                   unix_start + static_cast<double>(i), one.size(),
                   At(one, 0.5), At(one, 0.99), At(one, 0.999), At(one, 1));
    }
    return std::fclose(file) == 0 ? Status::OK()
                                  : Status::IOError(path, "write failed");
  }

  void AddTo(Report* report) {
    std::vector<float> all;
    for (const auto& one : seconds_) {
      all.insert(all.end(), one.begin(), one.end());
    }
    std::sort(all.begin(), all.end());
    report->Add("operations", static_cast<uint64_t>(all.size()));
    report->Add("p50_us", static_cast<double>(At(all, 0.5)));
    report->Add("p99_us", static_cast<double>(At(all, 0.99)));
    report->Add("p999_us", static_cast<double>(At(all, 0.999)));
    report->Add("max_us", static_cast<double>(At(all, 1)));
  }

 private:
  static float At(const std::vector<float>& sorted, double share) {
    if (sorted.empty()) return 0;
    const auto last = static_cast<double>(sorted.size() - 1);
    return sorted[static_cast<size_t>(share * last)];
  }

  std::mutex mutex_;
  std::vector<std::vector<float>> seconds_;
};

// Finds existing keys, evenly distributed, so that reads find entries.
Status SampleKeys(rocksdb::DB* db, size_t count,
                  std::vector<std::string>* keys) {
  rocksdb::ReadOptions read;
  read.total_order_seek = true;
  const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(read));
  std::string probe;
  for (size_t i = 0; i < count; ++i) {
    FillKey(1, i, count, &probe);
    it->Seek(probe);
    if (it->Valid()) keys->push_back(it->key().ToString());
  }
  if (keys->empty()) return Status::InvalidArgument("the database is empty");
  return it->status();
}

Status OneOperation(const LoadOptions& options, uint64_t number,
                    const std::vector<std::string>& keys, rocksdb::DB* db,
                    std::string* value) {
  const std::string& key = keys[number * 2654435761u % keys.size()];
  if (number % 100 < options.read_percent) {
    const Status s = db->Get(rocksdb::ReadOptions(), key, value);
    return s.IsNotFound() ? Status::OK() : s;
  }
  FillValue(options.seed, number, options.value_bytes, value);
  return db->Put(rocksdb::WriteOptions(), key, *value);
}

Status ServeThread(const LoadOptions& options, uint64_t thread,
                   Clock::time_point start,
                   const std::vector<std::string>& keys, rocksdb::DB* db,
                   LatencySeries* series) {
  std::vector<std::pair<uint64_t, float>> samples;
  std::string value;
  Status s;
  for (uint64_t n = thread; s.ok() && !stop; n += options.threads) {
    const auto offset =
        std::chrono::nanoseconds(n * 1000000000 / options.rate_per_sec);
    const Clock::time_point intended = start + offset;
    if (offset >= std::chrono::seconds(options.seconds)) break;
    std::this_thread::sleep_until(intended);
    s = OneOperation(options, n, keys, db, &value);
    const std::chrono::duration<float, std::micro> late =
        Clock::now() - intended;
    samples.emplace_back(
        std::chrono::duration_cast<std::chrono::seconds>(offset).count(),
        late.count());
  }
  series->Add(samples);
  return s;
}

Status Serve(const LoadOptions& options, Report* report) {
  rocksdb::Options db_options = DatabaseOptions();
  db_options.create_if_missing = false;
  std::unique_ptr<rocksdb::DB> db;
  Status s = rocksdb::DB::Open(db_options, options.db, IntoDb(&db));
  if (!s.ok()) return s;
  rocksdb::DB* const raw = db.get();
  std::vector<std::string> keys;
  s = SampleKeys(raw, 20000, &keys);
  if (!s.ok()) return s;
  std::printf("serving\n");
  std::fflush(stdout);
  LatencySeries series;
  const double unix_start =
      std::chrono::duration<double>(
          std::chrono::system_clock::now().time_since_epoch())
          .count();
  const Clock::time_point start = Clock::now();
  std::vector<Status> ended(options.threads);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < options.threads; ++t) {
    threads.emplace_back([&, t] {
      ended[t] = ServeThread(options, t, start, keys, raw, &series);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Status& one : ended) {
    if (s.ok()) s = one;
  }
  series.AddTo(report);
  if (s.ok() && !options.csv.empty()) {
    s = series.WriteCsv(options.csv, unix_start);
  }
  const Status closed = db->Close();
  return s.ok() ? closed : s;
}

}  // namespace
}  // namespace sstferry::bench

int main(int argc, char** argv) {
  using namespace sstferry::bench;
  std::signal(SIGTERM, [](int) { stop = true; });
  std::signal(SIGINT, [](int) { stop = true; });
  Flags flags(argc, argv);
  LoadOptions options;
  options.db = flags.Required("db");
  options.csv = flags.Text("csv");
  options.rate_per_sec = flags.Number("rate", options.rate_per_sec);
  options.read_percent = flags.Number("read-percent", options.read_percent);
  options.threads = flags.Number("threads", options.threads);
  options.seconds = flags.Number("seconds", options.seconds);
  options.seed = flags.Number("seed", options.seed);
  options.value_bytes = flags.Number("value-bytes", options.value_bytes);
  flags.Done();
  if (options.rate_per_sec == 0 || options.threads == 0) {
    WrongUsage("--rate and --threads must not be zero");
  }
  Report report;
  const rocksdb::Status s = Serve(options, &report);
  return report.Finish(s);
}
