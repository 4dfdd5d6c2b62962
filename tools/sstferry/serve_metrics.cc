#include "tools/sstferry/serve_metrics.h"

#include <algorithm>
#include <ctime>
#include <set>

namespace sstferry {
namespace {

// Maximum number of transfers in counted_. A server runs fewer transfers at
// once, so Count() removes only transfers that have ended.
constexpr size_t kMaxCounted = 1024;

double Of(const std::map<std::string, double>& stages, const char* stage) {
  const auto found = stages.find(stage);
  return found == stages.end() ? 0 : found->second;
}

// Returns the growth of a counter. Returns 0 if the counter began at 0 again,
// because another process has resumed the transfer.
double Growth(double now, double before) {
  return now > before ? now - before : 0;
}

}  // namespace

ServeMetrics::ServeMetrics(const ServeOptions* options,
                           const std::string& listen)
    : options_(options), process_({{"listen", listen}}), counters_(process_) {
  FollowDatabases({options_->databases, {}, {}, {}});
}

// Sets the counters of new databases to 0. If a series began with a larger
// value, Prometheus would leave this value out of rate(). A series with the
// status of a failure begins with the first failure of this kind.
void ServeMetrics::FollowDatabases(const ServerState& state) {
  std::set<std::string> names;
  for (const ServedDatabase& database : state.databases) {
    names.insert(database.name);
    const MetricLabels labels = {{"database", database.name}};
    for (const MetricSpec* spec :
         {&metric::kSourceInterruptions, &metric::kSourceEntries,
          &metric::kSourceSstBytes, &metric::kSourceWireBytes,
          &metric::kSourceReadWals, &metric::kSourceLastSuccess}) {
      counters_.Add(*spec, labels, 0);
    }
    counters_.Add(
        metric::kSourceTransfers,
        {{"database", database.name}, {"status", EndStateName(EndState::kOk)}},
        0);
    for (const char* stage : kSourceStages) {
      counters_.Add(metric::kSourceStages,
                    {{"database", database.name}, {"stage", stage}}, 0);
    }
  }
  // Keeps the counters of removed databases that still have transfers or
  // snapshots.
  for (const TransferReport& report : state.transfers) {
    names.insert(report.name);
  }
  for (const RetainedSnapshot& retained : state.snapshots) {
    names.insert(retained.database);
  }
  counters_.KeepOnly("database", names);
}

void ServeMetrics::SetCertificates(const TlsFiles& files) {
  const std::lock_guard<std::mutex> lock(mu_);
  counters_.SetCertificates(files, process_);
}

void ServeMetrics::Count(const TransferReport& report) {
  Counted& counted = counted_[report.transfer_id];
  counted.used = ++clock_;
  const MetricLabels labels = {{"database", report.name}};
  const TransferReport& before = counted.report;
  counters_.Add(metric::kSourceEntries, labels,
                Growth(report.entries, before.entries));
  counters_.Add(metric::kSourceSstBytes, labels,
                Growth(report.sst_bytes, before.sst_bytes));
  counters_.Add(metric::kSourceWireBytes, labels,
                Growth(report.wire_bytes, before.wire_bytes));
  for (const char* stage : kSourceStages) {
    counters_.Add(metric::kSourceStages,
                  {{"database", report.name}, {"stage", stage}},
                  Growth(Of(report.stage_seconds, stage),
                         Of(before.stage_seconds, stage)));
  }
  if (report.unknown_options) {
    counters_.Set(metric::kSourceUnknownOptions, labels,
                  static_cast<double>(*report.unknown_options));
  }
  counted.report = report;
  if (counted_.size() > kMaxCounted) {
    counted_.erase(std::min_element(
        counted_.begin(), counted_.end(), [](const auto& a, const auto& b) {
          return a.second.used < b.second.used;
        }));
  }
}

// Adds the bytes of WALs that the server has read for followers since the last
// call. After a time without followers, `followed.read_bytes` begins at 0
// again.
void ServeMetrics::Count(const FollowedState& followed) {
  uint64_t& before = read_bytes_[followed.database];
  const uint64_t now = followed.read_bytes;
  counters_.Add(metric::kSourceReadWals, {{"database", followed.database}},
                static_cast<double>(now < before ? now : now - before));
  before = now;
}

void ServeMetrics::Report(const TransferReport& report) {
  const std::lock_guard<std::mutex> lock(mu_);
  Count(report);
  if (report.kept_for.count() > 0) {
    counters_.Add(metric::kSourceInterruptions, {{"database", report.name}}, 1);
    return;
  }
  counters_.Add(metric::kSourceTransfers,
                {{"database", report.name},
                 {"status", EndStateName(EndStateOf(report.status))}},
                1);
  if (report.status.ok()) {
    counters_.Set(metric::kSourceLastSuccess, {{"database", report.name}},
                  static_cast<double>(std::time(nullptr)));
  }
}

void ServeMetrics::AddDisks(const std::vector<ServedDatabase>& databases,
                            MetricSet* set) const {
  for (const ServedDatabase& database : databases) {
    const MetricLabels labels = {{"database", database.name}};
    set->Set(metric::kSourceMinFree, labels, options_->min_free_percent / 100);
    set->SetDisk(metric::kSourceDiskFree, metric::kSourceDiskSize, labels,
                 options_->snapshot_dir.empty() ? database.directory
                                                : options_->snapshot_dir);
  }
}

MetricSet ServeMetrics::Collect(const ServerState& state) {
  MetricSet set;
  {
    const std::lock_guard<std::mutex> lock(mu_);
    for (const TransferReport& report : state.transfers) {
      Count(report);
    }
    for (const FollowedState& followed : state.followed) {
      Count(followed);
    }
    FollowDatabases(state);
    set = counters_;
  }
  for (const ServedDatabase& database : state.databases) {
    for (const MetricSpec* spec :
         {&metric::kSourceActive, &metric::kSourceSnapshots,
          &metric::kSourcePinnedBytes, &metric::kSourceOldestSnapshot,
          &metric::kSourceFollowers, &metric::kSourceFollowersBehind,
          &metric::kSourceFollowersLag, &metric::kSourceHeldWals}) {
      set.Set(*spec, {{"database", database.name}}, 0);
    }
  }
  for (const TransferReport& report : state.transfers) {
    set.Add(metric::kSourceActive, {{"database", report.name}},
            report.connected ? 1 : 0);
  }
  for (const RetainedSnapshot& retained : state.snapshots) {
    const MetricLabels labels = {{"database", retained.database}};
    set.Add(metric::kSourceSnapshots, labels, 1);
    set.Add(metric::kSourcePinnedBytes, labels, retained.pinned_bytes);
    set.Set(metric::kSourceOldestSnapshot, labels,
            std::max(set.Get(metric::kSourceOldestSnapshot, labels),
                     static_cast<double>(retained.age_seconds)));
  }
  for (const FollowedState& followed : state.followed) {
    const MetricLabels labels = {{"database", followed.database}};
    uint64_t behind_bytes = 0;
    uint64_t behind_millis = 0;
    for (const FollowerState& follower : followed.followers) {
      behind_bytes = std::max(behind_bytes, follower.behind_bytes);
      behind_millis = std::max(behind_millis, follower.behind_millis);
    }
    set.Set(metric::kSourceFollowers, labels, followed.followers.size());
    set.Set(metric::kSourceFollowersBehind, labels, behind_bytes);
    set.Set(metric::kSourceFollowersLag, labels,
            static_cast<double>(behind_millis) / 1000);
    set.Set(metric::kSourceHeldWals, labels, followed.held_bytes);
  }
  set.Set(metric::kSourceChunksBuilt, process_, state.chunks_built);
  set.Set(metric::kSourceChunksFromStore, process_, state.chunks_from_store);
  AddDisks(state.databases, &set);
  return set;
}

std::string ServeMetrics::FileText(const ServerState& state) {
  MetricSet set = Collect(state);
  set.Set(metric::kSourceWritten, process_, std::time(nullptr));
  return set.Text();
}

}  // namespace sstferry
