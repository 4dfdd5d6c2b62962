#include "tools/sstferry/archive_metrics.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>

#include <ctime>
#include <filesystem>
#include <set>
#include <system_error>

#include "tools/sstferry/metric_set.h"

namespace sstferry {

using rocksdb::Status;

namespace {

// Returns the name of a part, such as "03 of 20". With the leading zero, the
// names sort in numerical order.
std::string PartName(uint64_t part, uint64_t parts) {
  const std::string last = std::to_string(parts);
  std::string name = std::to_string(part);
  name.insert(0, last.size() - name.size(), '0');
  return name + " of " + last;
}

// Sets for each part of the archive's data the time at which a check has read
// it. The part that this check has read gets `now`, if the check succeeded. The
// other parts keep their times.
void SetParts(const ArchiveReport& report, MetricLabels labels, double now,
              MetricSet* metrics) {
  if (report.read_parts == 0) {
    return;
  }
  std::set<std::string> names;
  for (uint64_t part = 1; part <= report.read_parts; ++part) {
    labels["part"] = PartName(part, report.read_parts);
    names.insert(labels["part"]);
    const bool is_read = part == report.read_part && report.check_status.ok();
    metrics->Set(metric::kArchivePartRead, labels,
                 is_read ? now
                         : metrics->Get(metric::kArchivePartRead, labels));
  }
  // Removes the parts of earlier checks that divided the data into another
  // number of parts, because their --read-data was different.
  metrics->KeepOnly("part", names);
}

void SetFound(const ArchiveReport& report, const MetricLabels& labels,
              double now, MetricSet* metrics) {
  double damaged = 0;
  for (const ArchivedSet& set : report.sets) {
    damaged += set.state == "damaged" ? 1 : 0;
  }
  // Computes the time of the newest set from its age. The time in the set comes
  // from the clock of the store, which may be wrong.
  metrics->Set(metric::kArchiveNewestSet, labels,
               report.newest_age_seconds.has_value()
                   ? now - static_cast<double>(*report.newest_age_seconds)
                   : 0);
  metrics->Set(metric::kArchiveSets, labels, report.sets.size());
  metrics->Set(metric::kArchiveDamagedSets, labels, damaged);
  metrics->Set(metric::kArchiveBytes, labels, report.bytes);
  metrics->Set(metric::kArchiveOrphanBytes, labels, report.orphan_bytes);
}

// Sets the metrics of a push. If the push failed, the metrics keep their old
// values.
void SetPushed(const ArchiveReport& report, const MetricLabels& labels,
               double now, MetricSet* metrics) {
  const bool is_pushed = report.status.ok() && !report.sets.empty();
  const auto set = [&](const MetricSpec& spec, double value) {
    metrics->Set(spec, labels, is_pushed ? value : metrics->Get(spec, labels));
  };
  set(metric::kArchiveLastPush, now);
  set(metric::kArchivePushSeconds, report.seconds);
  set(metric::kArchivePushBytes,
      is_pushed ? static_cast<double>(report.sets.front().bytes) : 0);
  set(metric::kArchivePushUploaded, report.uploaded_bytes);
}

// Records whether this run has failed. Drills have their own series: a drill
// that succeeds says nothing about the last check, which may have read data.
void SetFailed(const ArchiveOptions& options, const ArchiveReport& report,
               MetricLabels labels, double now, MetricSet* metrics) {
  const Status& status = report.status;
  labels["action"] = options.drill_dir.empty()
                         ? ArchiveActionName(options.action)
                         : "drill";
  // One of the pushes of push --all that has not run changes nothing.
  const bool has_run = !status.ok() || options.action != ArchiveAction::kPush ||
                       !report.sets.empty();
  if (has_run && !options.dry_run) {
    metrics->Set(metric::kArchiveRunFailed, labels, status.ok() ? 0 : now);
  }
}

}  // namespace

std::string ArchiveMetricsText(const ArchiveOptions& options,
                               const ArchiveReport& report,
                               const std::string& before) {
  const MetricLabels labels = {{"archive", options.store.where.ToString()}};
  const auto now = static_cast<double>(std::time(nullptr));
  MetricSet metrics(labels);
  metrics.Restore(before, "archive", labels.at("archive"));
  SetFailed(options, report, labels, now, &metrics);
  if (options.action == ArchiveAction::kPush) {
    SetPushed(report, labels, now, &metrics);
    return metrics.Text();
  }
  if (options.action == ArchiveAction::kPrune) {
    metrics.Set(metric::kArchiveLastPrune, labels,
                report.status.ok() && !options.dry_run
                    ? now
                    : metrics.Get(metric::kArchiveLastPrune, labels));
    return metrics.Text();
  }
  const Status& check = report.check_status;
  metrics.Set(metric::kArchiveLastCheck, labels,
              check.ok() ? now
                         : metrics.Get(metric::kArchiveLastCheck, labels));
  if (report.is_checked) {
    SetFound(report, labels, now, &metrics);
    SetParts(report, labels, now, &metrics);
  }
  if (!options.drill_dir.empty()) {
    const bool is_drilled =
        report.drill.has_value() && report.drill->status.ok() &&
        (!report.log_drill.has_value() || report.log_drill->status.ok()) &&
        (!report.continued_drill.has_value() ||
         report.continued_drill->status.ok());
    metrics.Set(metric::kArchiveLastDrill, labels,
                is_drilled ? now
                           : metrics.Get(metric::kArchiveLastDrill, labels));
    metrics.Set(metric::kArchiveDrillSeconds, labels,
                is_drilled
                    ? report.drill->seconds
                    : metrics.Get(metric::kArchiveDrillSeconds, labels));
  }
  return metrics.Text();
}

Descriptor LockMetrics(const std::string& file) {
  constexpr int kLooks = 100;
  constexpr int kLookMillis = 20;
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(file, error);
  Descriptor directory = OpenLinked(path.parent_path().string(),
                                    O_RDONLY | O_DIRECTORY);
  // Waits only for a limited time: any account that can open the directory
  // could keep it locked.
  for (int i = 0; directory.is_open() && i < kLooks; ++i) {
    if (flock(directory.get(), LOCK_EX | LOCK_NB) == 0) {
      return directory;
    }
    poll(nullptr, 0, kLookMillis);
  }
  return Descriptor();
}

}  // namespace sstferry
