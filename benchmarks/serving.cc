// A process that owns a replica, serves a load from it, and refreshes it
// through the library at the same time.
//
//   bench_serving --db DIR --keys N --out FILE.json
//       --source sst://HOST:PORT/NAME|DIR | --spinner CORES [--spinner-idle]
//       | --writer BYTES_PER_SECOND | --idle
//       [--mix 60/10/10/10/10] [--rate 2000 | --closed-loop] ...
//
// Phases: warm-up, before, during (for its parts see RefreshRun::Stage), after.
// DIR was pulled. Its default family contains FillKey(--key-seed, 0 to N - 1,
// N), like the source's; keys that are not found are counted. The load writes
// the families "local" and "heartbeat", which no refresh covers; both are
// created again at the start.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "benchmarks/serving_refresh.h"
#include "benchmarks/serving_report.h"
#include "benchmarks/support/database.h"
#include "benchmarks/support/disk_writer.h"
#include "benchmarks/support/flags.h"
#include "benchmarks/support/foreground.h"
#include "benchmarks/support/report.h"
#include "benchmarks/support/spinner.h"
#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/cache.h"
#include "rocksdb/table.h"
#include "rocksdb/utilities/options_util.h"

namespace sstferry::bench {
namespace {

using rocksdb::Status;
using std::chrono::milliseconds;

constexpr auto kPoll = milliseconds(5);

struct ServingOptions {
  std::string db;
  std::string out;
  LoadOptions load;
  uint64_t cache_bytes = 256'000'000;
  double warm_seconds = 3;
  double before_seconds = 15;
  double after_seconds = 10;
  // Duration of the phase `during` without a refresh.
  double during_seconds = 10;
  double spinner_cores = 0;
  unsigned spinner_threads = 4;
  bool spinner_idle = false;
  uint64_t writer_bytes_per_sec = 0;
  long source_pid = 0;  // process whose CPU is counted; 0: none
  bool refreshes = false;
  RefreshOptions refresh;
};

double Seconds(Flags* flags, const std::string& name, double fallback) {
  const std::string text = flags->Text(name);
  if (text.empty()) return fallback;
  char* end = nullptr;
  const double seconds = std::strtod(text.c_str(), &end);
  if (*end != '\0' || seconds < 0) {
    WrongUsage("--" + name + ": not a number: " + text);
  }
  return seconds;
}

void ReadLoad(Flags* flags, LoadOptions* load) {
  const Status s = ParseMix(flags->Text("mix", "100"), &load->mix);
  if (!s.ok()) WrongUsage("--mix: " + s.ToString());
  const std::string keys = flags->Text("distribution", "zipfian");
  if (keys != "zipfian" && keys != "uniform") {
    WrongUsage("--distribution is zipfian or uniform");
  }
  load->zipfian = keys == "zipfian";
  load->closed_loop = flags->Switch("closed-loop", false);
  load->rate_per_sec = Seconds(flags, "rate", load->rate_per_sec);
  load->fixed_spacing = flags->Switch("fixed-spacing", false);
  load->threads = flags->Number("threads", load->threads);
  load->scan_entries = flags->Number("scan-entries", load->scan_entries);
  load->values.median_bytes =
      flags->Number("value-bytes", load->values.median_bytes);
  load->values.log_normal = flags->Switch("log-normal", false);
  load->seed = flags->Number("seed", load->seed);
  load->read_keys = flags->Number("keys", 0);
  load->read_seed = flags->Number("key-seed", load->read_seed);
  load->local_keys = flags->Number("local-keys", load->local_keys);
  load->heartbeat_micros =
      flags->Number("heartbeat-micros", load->heartbeat_micros);
  if (load->read_keys == 0 || load->local_keys < 2 || load->threads == 0 ||
      load->rate_per_sec <= 0) {
    WrongUsage("--keys, --threads and --rate must be more than 0, "
               "--local-keys more than 1");
  }
}

ServingOptions ReadOptions(Flags* flags) {
  ServingOptions options;
  options.db = flags->Required("db");
  options.out = flags->Required("out");
  ReadLoad(flags, &options.load);
  options.cache_bytes = flags->Number("cache-bytes", options.cache_bytes);
  options.warm_seconds = Seconds(flags, "warm", options.warm_seconds);
  options.before_seconds = Seconds(flags, "before", options.before_seconds);
  options.after_seconds = Seconds(flags, "after", options.after_seconds);
  options.during_seconds = Seconds(flags, "during", options.during_seconds);
  options.spinner_cores = Seconds(flags, "spinner", 0);
  options.spinner_threads = static_cast<unsigned>(
      flags->Number("spinner-threads", options.spinner_threads));
  options.spinner_idle = flags->Switch("spinner-idle", false);
  options.writer_bytes_per_sec = flags->Number("writer", 0);
  options.source_pid = static_cast<long>(flags->Number("source-pid", 0));
  options.refreshes =
      !flags->Switch("idle", false) && options.spinner_cores == 0 &&
      options.writer_bytes_per_sec == 0;
  if (options.refreshes) {
    options.refresh = ReadRefreshOptions(flags, options.load.read_keys,
                                         options.load.read_seed);
  }
  flags->Done();
  return options;
}

// Makes compactions use only CPU that no other thread wants, and disk time at
// low priority. Not with a closed loop, which leaves no idle CPU.
Status LowerCompactions(const ServingOptions& options, rocksdb::Env* env) {
  if (options.load.closed_loop) return Status::OK();
  env->LowerThreadPoolIOPriority(rocksdb::Env::LOW);
  return env->LowerThreadPoolCPUPriority(rocksdb::Env::LOW,
                                         rocksdb::CpuPriority::kIdle);
}

// The database and its handles, closed by the destructor.
class Target {
 public:
  ~Target() { Close(); }

  Status Open(const ServingOptions& options,
              std::shared_ptr<rocksdb::EventListener> listener) {
    rocksdb::DBOptions db_options;
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    Status s = rocksdb::LoadLatestOptions(rocksdb::ConfigOptions(), options.db,
                                          &db_options, &families);
    if (!s.ok()) return s;
    db_options.error_if_exists = false;  // the database exists already
    db_options.listeners.push_back(std::move(listener));
    s = LowerCompactions(options, db_options.env);
    if (!s.ok()) return s;
    const auto cache = rocksdb::NewLRUCache(options.cache_bytes);
    for (auto& family : families) {
      auto* const table =
          family.options.table_factory
              ->GetOptions<rocksdb::BlockBasedTableOptions>();
      if (table != nullptr) table->block_cache = cache;
    }
    s = rocksdb::DB::Open(db_options, options.db, families, &handles_,
                          IntoDb(&db_));
    if (!s.ok()) return s;
    targets_.db = db_.get();
    targets_.read = db_->DefaultColumnFamily();
    const rocksdb::ColumnFamilyOptions own(families.front().options);
    s = MakeAnew("local", own, &targets_.local);
    if (s.ok()) s = MakeAnew("heartbeat", own, &targets_.heartbeat);
    return s.ok() ? FillLocal(options.load, targets_) : s;
  }

  Status Close() {
    if (db_ == nullptr) return Status::OK();
    for (auto* handle : handles_) {
      db_->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
    }
    const Status s = db_->Close();
    db_.reset();
    return s;
  }

  const LoadTargets& targets() const { return targets_; }

 private:
  Status MakeAnew(const std::string& name,
                  const rocksdb::ColumnFamilyOptions& options,
                  rocksdb::ColumnFamilyHandle** made) {
    for (auto* handle : handles_) {
      if (handle->GetName() != name) continue;
      const Status s = db_->DropColumnFamily(handle);
      if (!s.ok()) return s;
    }
    const Status s = db_->CreateColumnFamily(options, name, made);
    if (s.ok()) handles_.push_back(*made);
    return s;
  }

  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
  LoadTargets targets_;
};

double ProcessCpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) +
           static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Returns the CPU seconds of a process so far; 0 if there is no such process.
double CpuSecondsOf(long pid) {
  if (pid == 0) return 0;
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return 0;
  unsigned long user = 0;
  unsigned long system = 0;
  std::sscanf(line.c_str() + name_end + 1,
              " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
              &system);
  return static_cast<double>(user + system) /
         static_cast<double>(sysconf(_SC_CLK_TCK));
}

double MachineCpuSeconds() {
  std::ifstream file("/proc/stat");
  std::string word;
  unsigned long user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0,
                soft_irq = 0;
  file >> word >> user >> nice >> system >> idle >> wait >> irq >> soft_irq;
  return static_cast<double>(user + nice + system + irq + soft_irq) /
         static_cast<double>(sysconf(_SC_CLK_TCK));
}

// Returns the value with this name in /proc/self/io, as in proc(5).
uint64_t IoBytes(const std::string& name) {
  std::ifstream file("/proc/self/io");
  std::string word;
  uint64_t bytes = 0;
  while (file >> word >> bytes) {
    if (word == name + ":") return bytes;
  }
  return 0;
}

// Runs the phases, and records the usage at the start of each.
class Walk {
 public:
  Walk(const ServingOptions& options, const LoadTargets& targets)
      : options_(options), targets_(targets) {
    phases_.Begin("warm-up");
    load_ = std::make_unique<Foreground>(options.load, targets, &phases_);
    Note();
  }

  Status Run(ServedRun* served) {
    Sleep(options_.warm_seconds);
    Begin("before");
    Sleep(options_.before_seconds);
    served->shapes["before"] = TableFactsOf(targets_);
    Status s = During(served);
    Begin("after");
    served->shapes["after"] = TableFactsOf(targets_);
    Sleep(options_.after_seconds);
    Begin("end");
    const Status ended = load_->Stop();
    served->load = load_.get();
    served->phases = &phases_;
    served->usage = usage_;
    return s.ok() ? ended : s;
  }

 private:
  static void Sleep(double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }

  void Note() {
    const Foreground::Usage load = load_->usage();
    usage_.push_back({ProcessCpuSeconds(), load.cpu_seconds,
                      load.wait_seconds, CpuSecondsOf(options_.source_pid),
                      MachineCpuSeconds(), IoBytes("read_bytes"),
                      IoBytes("wchar")});
  }

  void Begin(const std::string& name) {
    phases_.Begin(name);
    if (usage_.size() < phases_.size()) Note();
  }

  // Runs a stand-in for a refresh: a spinner that uses only CPUs, a writer that
  // uses only the disk, or nothing. The results show which of them slows the
  // load down.
  Status DuringStandIn() {
    const bool spins = options_.spinner_cores > 0;
    const bool writes = options_.writer_bytes_per_sec > 0;
    Begin(spins ? "during/spinner" : writes ? "during/writer" : "during/idle");
    const Spinner spinner(options_.spinner_cores,
                          spins ? options_.spinner_threads : 0,
                          options_.spinner_idle);
    DiskWriter writer(options_.db, options_.writer_bytes_per_sec);
    Sleep(options_.during_seconds);
    return writer.Stop();
  }

  Status During(ServedRun* served) {
    if (!options_.refreshes) return DuringStandIn();
    OpenReplica replica;
    replica.db = targets_.db;
    replica.families = {targets_.read};
    RefreshRun refresh(options_.refresh, replica);
    std::string stage = "prepare";
    Begin("during/" + stage);
    refresh.Start();
    while (!stage.empty()) {
      std::this_thread::sleep_for(kPoll);
      const std::string now = refresh.Stage();
      if (now != stage && !now.empty()) Begin("during/" + now);
      stage = now;
    }
    const Status s = refresh.Join();
    served->summary_json = SummaryToJson(refresh.summary(), "pull");
    served->longest_call_micros =
        refresh.summary().write_blocked_micros.count("max") == 0
            ? 0
            : refresh.summary().write_blocked_micros.at("max");
    return s;
  }

  const ServingOptions& options_;
  const LoadTargets targets_;
  PhaseTable phases_;
  std::unique_ptr<Foreground> load_;
  std::vector<UsagePoint> usage_;
};

Status Serve(const ServingOptions& options) {
  const auto ingests = std::make_shared<IngestLog>();
  Target target;
  Status s = target.Open(options, ingests);
  if (!s.ok()) return s;
  ServedRun served;
  Walk walk(options, target.targets());
  s = walk.Run(&served);
  served.ingest_calls = ingests->calls();
  const Status written = WriteReport(options.out, options.load, served, s);
  const Status closed = target.Close();
  if (!s.ok()) return s;
  return written.ok() ? closed : written;
}

}  // namespace
}  // namespace sstferry::bench

int main(int argc, char** argv) {
  sstferry::bench::Flags flags(argc, argv);
  const auto options = sstferry::bench::ReadOptions(&flags);
  sstferry::bench::Report report;
  report.Add("out", options.out);
  const rocksdb::Status s = sstferry::bench::Serve(options);
  return report.Finish(s);
}
