#include "tools/sstferry/measured_pull.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <utility>

#include "sstferry/status.h"

namespace sstferry {
namespace {

using rocksdb::Status;

constexpr const char* kKinds[] = {"rebuilt", "cloned", "resumed", "skipped",
                                  "reused"};
constexpr const char* kPercentiles[] = {"p50", "p99", "max"};

template <typename Value>
double Of(const std::map<std::string, Value>& values, const char* name) {
  const auto found = values.find(name);
  return found == values.end() ? 0 : static_cast<double>(found->second);
}

double BytesOf(const Summary& summary, const std::string& kind) {
  const bool is_clone = summary.method == "clone";
  const uint64_t bytes =
      kind == "rebuilt"   ? (is_clone ? 0 : summary.sst_bytes)
      : kind == "cloned"  ? (is_clone ? summary.sst_bytes : 0)
      : kind == "resumed" ? summary.sst_bytes_resumed
      : kind == "skipped" ? summary.bytes_skipped
                          : summary.bytes_reused;
  return static_cast<double>(bytes);
}

}  // namespace

std::string TargetLabel(const std::string& target_dir) {
  std::error_code error;
  const std::string path = std::filesystem::absolute(target_dir, error)
                               .lexically_normal()
                               .string();
  return path.size() > 1 && path.back() == '/'
             ? path.substr(0, path.size() - 1)
             : path;
}

MeasuredPull::MeasuredPull(const PullArguments& arguments,
                           std::unique_ptr<Operation> pull,
                           MetricsWriter write, const std::string& before)
    : options_(arguments.options),
      file_(arguments.metrics.file),
      is_first_(before.empty()),
      target_(TargetLabel(arguments.options.target_dir)),
      pull_(std::move(pull)),
      write_(std::move(write)),
      metrics_({{"target", target_}}) {
  FillEmpty();
  metrics_.SetCertificates(arguments.options.tls, {{"target", target_}});
  metrics_.Restore(before, "target", target_);
}

void MeasuredPull::FillEmpty() {
  const MetricLabels target = {{"target", target_}};
  for (const MetricSpec* spec :
       {&metric::kReplicaFailuresInRow, &metric::kReplicaRetries,
        &metric::kReplicaWireBytes, &metric::kReplicaLastSuccess,
        &metric::kReplicaLastEnd, &metric::kLastRunDuration, &metric::kLastRunEntries,
        &metric::kLastRunOutage, &metric::kReplicaCompactionDebt,
        &metric::kLastRunPeakMemory}) {
    metrics_.Set(*spec, target, 0);
  }
  // Only the status OK has a series from the start. The series of another
  // status appears with the first pull that ends with this status.
  metrics_.Set(
      metric::kReplicaRuns,
      {{"target", target_}, {"status", EndStateName(EndState::kOk)}}, 0);
  metrics_.Set(metric::kReplicaMinFree, target,
               options_.min_free_percent / 100);
  FillLastPull(Summary());
}

void MeasuredPull::ReadReplica() {
  StatusOptions where;
  where.where.directory = target_;
  StatusReport report;
  // Ignores errors. Usually there is no replica yet; the pull itself reports
  // other problems.
  MakeStatusQuery(where)->Run(&report).PermitUncheckedError();
  const TargetState& state = report.target;
  const std::optional<CompletedPull>& complete =
      state.complete ? state.complete : state.previous;
  const std::lock_guard<std::mutex> lock(mu_);
  metrics_.Set(metric::kReplicaFault, {{"target", target_}},
               state.health == ReplicaHealth::kDamaged     ? 2
               : state.health == ReplicaHealth::kDifferent ? 1
                                                           : 0);
  if (complete && complete->as_of_seconds) {
    metrics_.Set(metric::kReplicaTaken, {{"target", target_}},
                 static_cast<double>(*complete->as_of_seconds));
  }
  // Uses the parent directory, because the replica may not exist yet.
  metrics_.SetDisk(metric::kReplicaDiskFree, metric::kReplicaDiskSize,
                   {{"target", target_}},
                   std::filesystem::path(target_).parent_path().string());
}

void MeasuredPull::FillLastPull(const Summary& summary) {
  const MetricLabels target = {{"target", target_}};
  metrics_.Set(metric::kLastRunDuration, target, summary.seconds);
  metrics_.Set(metric::kLastRunEntries, target, summary.entries);
  metrics_.Set(metric::kLastRunOutage, target, summary.outage_seconds);
  metrics_.Set(metric::kReplicaCompactionDebt, target,
               static_cast<double>(summary.compaction_debt_bytes));
  metrics_.Set(metric::kLastRunPeakMemory, target, summary.peak_rss_bytes);
  for (const char* kind : kKinds) {
    metrics_.Set(metric::kLastRunBytes, {{"target", target_}, {"kind", kind}},
                 BytesOf(summary, kind));
  }
  for (const char* percentile : kPercentiles) {
    metrics_.Set(metric::kLastRunWriteBlocked,
                 {{"target", target_}, {"percentile", percentile}},
                 Of(summary.write_blocked_micros, percentile) / 1e6);
  }
  for (const char* stage : kSourceStages) {
    metrics_.Set(
        metric::kLastRunStages,
        {{"target", target_}, {"side", "source"}, {"stage", stage}},
        Of(summary.source_stage_seconds, stage));
  }
  for (const char* stage : kTargetStages) {
    metrics_.Set(
        metric::kLastRunStages,
        {{"target", target_}, {"side", "target"}, {"stage", stage}},
        Of(summary.target_stage_seconds, stage));
  }
}

Status MeasuredPull::Run(Summary* summary) {
  if (file_.empty()) {
    return pull_->Run(summary);
  }
  ReadReplica();
  // Writes the file before the first pull, because an alert needs the file even
  // if this pull is killed.
  if (is_first_) {
    WriteFile();
  }
  const Status status = pull_->Run(summary);
  ReadReplica();
  {
    const std::lock_guard<std::mutex> lock(mu_);
    CountEnd(*summary);
  }
  WriteFile();
  return status;
}

void MeasuredPull::WriteFile() {
  std::string text;
  {
    const std::lock_guard<std::mutex> lock(mu_);
    text = metrics_.Text();
  }
  const Status written = write_(file_, text);
  if (!written.ok() && options_.log) {
    options_.log(LogLevel::kError, MessageOf(written));
  }
}

void MeasuredPull::CountEnd(const Summary& summary) {
  const MetricLabels target = {{"target", target_}};
  const auto now = static_cast<double>(std::time(nullptr));
  FillLastPull(summary);
  metrics_.Set(metric::kReplicaInfo,
               {{"target", target_},
                {"source", options_.source.ToString()},
                {"mode", summary.mode},
                {"method", summary.method}},
               1);
  metrics_.Add(metric::kReplicaRuns,
               {{"target", target_},
                {"status", EndStateName(EndStateOf(summary.status))}},
               1);
  metrics_.Add(metric::kReplicaRetries, target, summary.retries);
  metrics_.Add(metric::kReplicaWireBytes, target, summary.wire_bytes);
  metrics_.Set(metric::kReplicaLastEnd, target, now);
  if (summary.status.ok()) {
    metrics_.Set(metric::kReplicaLastSuccess, target, now);
    metrics_.Set(metric::kReplicaFailuresInRow, target, 0);
  } else {
    metrics_.Add(metric::kReplicaFailuresInRow, target, 1);
  }
}

}  // namespace sstferry
