#include "benchmarks/serving_report.h"

#include <algorithm>
#include <fstream>

#include <nlohmann/json.hpp>

#include "benchmarks/support/database.h"
#include "rocksdb/table_properties.h"

namespace sstferry::bench {

namespace {

using nlohmann::json;
using rocksdb::Status;

constexpr size_t kLongestShown = 50;

double ToSeconds(int64_t nanos) { return static_cast<double>(nanos) / 1e9; }

json ConfigJson(const LoadOptions& load) {
  std::string mix;
  for (const uint32_t percent : load.mix.percent) {
    mix += (mix.empty() ? "" : "/") + std::to_string(percent);
  }
  return {{"mix", mix},
          {"distribution", load.zipfian ? "zipfian" : "uniform"},
          {"loop", load.closed_loop ? "closed" : "open"},
          {"rate_per_second", load.closed_loop ? 0 : load.rate_per_sec},
          {"spacing", load.fixed_spacing ? "fixed" : "poisson"},
          {"threads", load.threads},
          {"scan_entries", load.scan_entries},
          {"value_bytes", load.values.median_bytes},
          {"value_sizes", load.values.log_normal ? "log-normal" : "fixed"},
          {"keys", load.read_keys},
          {"local_keys", load.local_keys},
          {"heartbeat_micros", load.heartbeat_micros},
          {"seed", load.seed}};
}

json HistogramJson(const LatencyHistogram& histogram) {
  return {{"count", histogram.count()},
          {"mean_us", histogram.mean_micros()},
          {"p50_us", histogram.Micros(0.5)},
          {"p90_us", histogram.Micros(0.9)},
          {"p99_us", histogram.Micros(0.99)},
          {"p999_us", histogram.Micros(0.999)},
          {"max_us", histogram.max_micros()}};
}

// A phase, or several that follow each other.
struct Span {
  std::string name;
  size_t first = 0;
  size_t end = 0;
};

json SpanJson(const Span& span, const ServedRun& served) {
  LatencyRecorder::Kinds kinds;
  for (size_t phase = span.first; phase < span.end; ++phase) {
    for (size_t kind = 0; kind < kOperationKinds; ++kind) {
      kinds[kind].Merge(served.load->recorder().phase(phase)[kind]);
    }
  }
  const double begin = ToSeconds(served.phases->begin(span.first));
  const double seconds = ToSeconds(served.phases->begin(span.end)) - begin;
  json out = {{"name", span.name}, {"begin_seconds", begin},
              {"seconds", seconds}};
  uint64_t operations = 0;
  for (size_t kind = 0; kind < kOperationKinds; ++kind) {
    out[kOperationNames[kind]] = HistogramJson(kinds[kind]);
    if (kind != static_cast<size_t>(OperationKind::kHeartbeat)) {
      operations += kinds[kind].count();
    }
  }
  out["operations"] = operations;
  out["operations_per_second"] =
      seconds > 0 ? static_cast<double>(operations) / seconds : 0;
  const UsagePoint& from = served.usage[span.first];
  const UsagePoint& to = served.usage[span.end];
  out["cpu_seconds"] = {{"process", to.process - from.process},
                        {"load", to.load - from.load},
                        {"load_wait", to.load_wait - from.load_wait},
                        {"source", to.source - from.source},
                        {"machine", to.machine - from.machine}};
  out["read_bytes"] = to.read_bytes - from.read_bytes;
  out["written_bytes"] = to.written_bytes - from.written_bytes;
  return out;
}

// Returns each phase, and one phase "during" for all whose names begin with it.
json PhasesJson(const ServedRun& served) {
  json out = json::array();
  Span during{"during", 0, 0};
  for (size_t i = 0; i + 1 < served.phases->size(); ++i) {
    const std::string& name = served.phases->name(i);
    out.push_back(SpanJson({name, i, i + 1}, served));
    if (name.rfind("during/", 0) != 0) continue;
    if (during.end == 0) during.first = i;
    during.end = i + 1;
  }
  if (during.end != 0) out.push_back(SpanJson(during, served));
  return out;
}

// Counts, by kind, the operations that were sent while the load was being
// stopped. The rows per second include them, but no phase does.
json AfterTheEndJson(const ServedRun& served) {
  const auto& kinds =
      served.load->recorder().phase(served.phases->size() - 1);
  json out;
  for (size_t kind = 0; kind < kOperationKinds; ++kind) {
    out[kOperationNames[kind]] = kinds[kind].count();
  }
  return out;
}

// Returns {"get": [[count, p50, p99, p99.9, max], ...], ...}, with a row per
// second.
json WindowsJson(const LatencyRecorder& recorder) {
  json out;
  for (size_t kind = 0; kind < kOperationKinds; ++kind) {
    json rows = json::array();
    for (const auto& kinds : recorder.seconds()) {
      const LatencyHistogram& one = kinds[kind];
      json row = {one.count(), one.Micros(0.5), one.Micros(0.99),
                  one.Micros(0.999), one.max_micros()};
      rows.push_back(std::move(row));
    }
    out[kOperationNames[kind]] = std::move(rows);
  }
  return out;
}

json LongestPutsJson(const ServedRun& served) {
  std::vector<HeartbeatPut> puts = served.load->long_puts();
  std::stable_sort(puts.begin(), puts.end(), [](const auto& a, const auto& b) {
    return a.nanos > b.nanos;
  });
  puts.resize(std::min(puts.size(), kLongestShown));
  json out = json::array();
  for (const HeartbeatPut& put : puts) {
    out.push_back({{"at_seconds", ToSeconds(put.begin)},
                   {"micros", static_cast<double>(put.nanos) / 1e3},
                   {"phase", served.phases->name(
                        served.phases->PhaseAt(put.begin))}});
  }
  return out;
}

// Estimates how long a call blocked writes: the longest heartbeat that overlaps
// it. RocksDB reports only the end of a call, so each call is assumed to be as
// long as the longest one.
json IngestCallsJson(const ServedRun& served) {
  json out = json::array();
  const int64_t longest =
      static_cast<int64_t>(served.longest_call_micros) * 1000;
  for (const IngestCall& call : served.ingest_calls) {
    const int64_t end = served.phases->Nanos(call.end);
    int64_t blocked = 0;
    for (const HeartbeatPut& put : served.load->long_puts()) {
      if (put.begin < end && put.begin + put.nanos > end - longest) {
        blocked = std::max(blocked, put.nanos);
      }
    }
    out.push_back({{"at_seconds", ToSeconds(end)},
                   {"files", call.files},
                   {"blocked_micros", static_cast<double>(blocked) / 1e3}});
  }
  return out;
}

json TablesJson(const TableFacts& facts) {
  json levels = json::object();
  for (const auto& [level, files] : facts.files_per_level) {
    levels[std::to_string(level)] = files;
  }
  return {{"levels", levels},
          {"bytes", facts.bytes},
          {"entries", facts.entries},
          {"deletions", facts.deletions},
          {"range_deletions", facts.range_deletions}};
}

}  // namespace

TableFacts TableFactsOf(const LoadTargets& targets) {
  TableFacts facts;
  std::vector<rocksdb::LiveFileMetaData> files;
  targets.db->GetLiveFilesMetaData(&files);
  for (const auto& file : files) {
    if (file.column_family_name != targets.read->GetName()) continue;
    ++facts.files_per_level[file.level];
    facts.bytes += file.size;
  }
  rocksdb::TablePropertiesCollection tables;
  const Status s =
      targets.db->GetPropertiesOfAllTables(targets.read, &tables);
  for (const auto& [name, table] : tables) {
    facts.entries += table->num_entries;
    facts.deletions += table->num_deletions;
    facts.range_deletions += table->num_range_deletions;
  }
  s.PermitUncheckedError();
  return facts;
}

Status WriteReport(const std::string& path, const LoadOptions& load,
                   const ServedRun& served, const Status& status) {
  json out = {{"schema", 1}, {"status", status.ToString()},
              {"load", ConfigJson(load)}};
  out["phases"] = PhasesJson(served);
  out["windows"] = WindowsJson(served.load->recorder());
  out["after_the_end"] = AfterTheEndJson(served);
  out["longest_heartbeats"] = LongestPutsJson(served);
  out["ingest_calls"] = IngestCallsJson(served);
  out["missing_reads"] = served.load->missing();
  for (const auto& [when, facts] : served.shapes) {
    out["tables"][when] = TablesJson(facts);
  }
  if (!served.summary_json.empty()) {
    out["refresh"] = json::parse(served.summary_json, nullptr, false);
  }
  std::ofstream file(path);
  file << out.dump(1) << '\n';
  return file.flush() ? Status::OK()
                      : Status::IOError(path, "cannot be written");
}

}  // namespace sstferry::bench
