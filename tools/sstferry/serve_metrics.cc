#include "tools/sstferry/serve_metrics.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <system_error>

namespace sstferry {
namespace {

// More than a server has at once, so that what falls out has ended.
constexpr size_t kMaxCounted = 1024;
constexpr const char* kStages[] = {"snapshot", "plan", "read_build",
                                   "send_wait", "idle"};

double Of(const std::map<std::string, double>& stages, const char* stage) {
  const auto found = stages.find(stage);
  return found == stages.end() ? 0 : found->second;
}

// A transfer that another process resumes starts to count again.
double Growth(double now, double before) {
  return now > before ? now - before : 0;
}

}  // namespace

ServeMetrics::ServeMetrics(const ServeOptions* options) : options_(options) {
  // All series are there from the start: rates of a series that appears with
  // its first value would miss it.
  for (const ServedDatabase& database : options_->databases) {
    const MetricLabels labels = {{"database", database.name}};
    for (const MetricSpec* spec :
         {&metric::kServeInterruptions, &metric::kServeEntries,
          &metric::kServeSstBytes, &metric::kServeWireBytes,
          &metric::kServeLastSuccess}) {
      counters_.Set(*spec, labels, 0);
    }
    for (uint8_t state = 0; state <= kMaxEndState; ++state) {
      counters_.Set(metric::kServeTransfers,
                    {{"database", database.name},
                     {"status", EndStateName(static_cast<EndState>(state))}},
                    0);
    }
    for (const char* stage : kStages) {
      counters_.Set(metric::kServeStages,
                    {{"database", database.name}, {"stage", stage}}, 0);
    }
  }
}

void ServeMetrics::Count(const TransferReport& report) {
  Counted& counted = counted_[report.transfer_id];
  counted.used = ++clock_;
  const MetricLabels labels = {{"database", report.name}};
  const TransferReport& before = counted.report;
  counters_.Add(metric::kServeEntries, labels,
                Growth(report.entries, before.entries));
  counters_.Add(metric::kServeSstBytes, labels,
                Growth(report.sst_bytes, before.sst_bytes));
  counters_.Add(metric::kServeWireBytes, labels,
                Growth(report.wire_bytes, before.wire_bytes));
  for (const char* stage : kStages) {
    counters_.Add(metric::kServeStages,
                  {{"database", report.name}, {"stage", stage}},
                  Growth(Of(report.stage_seconds, stage),
                         Of(before.stage_seconds, stage)));
  }
  counted.report = report;
  if (counted_.size() > kMaxCounted) {
    counted_.erase(std::min_element(
        counted_.begin(), counted_.end(), [](const auto& a, const auto& b) {
          return a.second.used < b.second.used;
        }));
  }
}

void ServeMetrics::Report(const TransferReport& report) {
  const std::lock_guard<std::mutex> lock(mu_);
  Count(report);
  if (report.kept_for.count() > 0) {
    counters_.Add(metric::kServeInterruptions, {{"database", report.name}}, 1);
    return;
  }
  counters_.Add(metric::kServeTransfers,
                {{"database", report.name},
                 {"status", EndStateName(EndStateOf(report.status))}},
                1);
  if (report.status.ok()) {
    counters_.Set(metric::kServeLastSuccess, {{"database", report.name}},
                  static_cast<double>(std::time(nullptr)));
  }
}

void ServeMetrics::AddDisks(MetricSet* set) const {
  set->Set(metric::kServeMinFree, {}, options_->min_free_percent / 100);
  for (const ServedDatabase& database : options_->databases) {
    std::error_code error;
    const std::string& directory = options_->snapshot_dir.empty()
                                       ? database.directory
                                       : options_->snapshot_dir;
    const std::filesystem::space_info space =
        std::filesystem::space(directory, error);
    // A database may be missing. Nobody fills a read-only file system.
    struct statvfs info;
    if (!error && statvfs(directory.c_str(), &info) == 0 &&
        (info.f_flag & ST_RDONLY) == 0) {
      const MetricLabels labels = {{"database", database.name}};
      set->Set(metric::kServeDiskFree, labels,
               static_cast<double>(space.available));
      set->Set(metric::kServeDiskSize, labels,
               static_cast<double>(space.capacity));
    }
  }
}

MetricSet ServeMetrics::Collect(const ServerState& state) {
  MetricSet set;
  {
    const std::lock_guard<std::mutex> lock(mu_);
    for (const TransferReport& report : state.transfers) {
      Count(report);
    }
    set = counters_;
  }
  for (const ServedDatabase& database : options_->databases) {
    for (const MetricSpec* spec :
         {&metric::kServeActive, &metric::kServeSnapshots,
          &metric::kServePinnedBytes, &metric::kServeOldestSnapshot}) {
      set.Set(*spec, {{"database", database.name}}, 0);
    }
  }
  for (const TransferReport& report : state.transfers) {
    set.Add(metric::kServeActive, {{"database", report.name}},
            report.connected ? 1 : 0);
  }
  for (const RetainedSnapshot& retained : state.snapshots) {
    const MetricLabels labels = {{"database", retained.database}};
    set.Add(metric::kServeSnapshots, labels, 1);
    set.Add(metric::kServePinnedBytes, labels,
            static_cast<double>(retained.pinned_bytes));
    set.Set(metric::kServeOldestSnapshot, labels,
            std::max(set.Get(metric::kServeOldestSnapshot, labels),
                     static_cast<double>(retained.age_seconds)));
  }
  AddDisks(&set);
  return set;
}

}  // namespace sstferry
