#include "tools/sstferry/metric_table.h"

#include <cstring>

namespace sstferry {
namespace metric {

constexpr MetricKind kCounter = MetricKind::kCounter;
constexpr MetricKind kGauge = MetricKind::kGauge;

const MetricSpec kBuildInfo = {
    "sstferry_build_info", kGauge, "version, rocksdb, protocol, target",
    "Versions of this program. Always 1."};

const MetricSpec kServeTransfers = {
    "sstferry_serve_transfers_total", kCounter, "database, status",
    "Transfers that have ended, by end state."};
const MetricSpec kServeInterruptions = {
    "sstferry_serve_interruptions_total", kCounter, "database",
    "Times that a target left and the source retained the snapshot."};
const MetricSpec kServeActive = {
    "sstferry_serve_active_transfers", kGauge, "database",
    "Transfers whose target is connected."};
const MetricSpec kServeEntries = {
    "sstferry_serve_entries_total", kCounter, "database", "Entries sent."};
const MetricSpec kServeSstBytes = {
    "sstferry_serve_sst_bytes_total", kCounter, "database",
    "Bytes of files and chunks sent, before compression."};
const MetricSpec kServeWireBytes = {
    "sstferry_serve_wire_bytes_total", kCounter, "database",
    "Bytes sent to targets."};
const MetricSpec kServeStages = {
    "sstferry_serve_stage_seconds_total", kCounter, "database, stage",
    "Time spent in each stage, of all lanes together."};
const MetricSpec kServeSnapshots = {
    "sstferry_serve_snapshots", kGauge, "database",
    "Snapshots in use or retained."};
const MetricSpec kServePinnedBytes = {
    "sstferry_serve_snapshot_pinned_bytes", kGauge, "database",
    "Bytes of the files that snapshots keep from being deleted."};
const MetricSpec kServeOldestSnapshot = {
    "sstferry_serve_snapshot_oldest_age_seconds", kGauge, "database",
    "Age of the oldest snapshot. 0: there is none."};
const MetricSpec kServeDiskFree = {
    "sstferry_serve_disk_free_bytes", kGauge, "database",
    "Free bytes of the file system that holds the snapshots."};
const MetricSpec kServeDiskSize = {
    "sstferry_serve_disk_size_bytes", kGauge, "database",
    "Size of the file system that holds the snapshots."};
const MetricSpec kServeMinFree = {
    "sstferry_serve_min_free_ratio", kGauge, "",
    "Share of free disk space below which snapshots are released "
    "(--min-free)."};
const MetricSpec kServeLastSuccess = {
    "sstferry_serve_last_success_timestamp_seconds", kGauge, "database",
    "Time at which a transfer last ended with OK. 0: none has since the "
    "start."};

const MetricSpec kPullInfo = {"sstferry_pull_info", kGauge,
                              "target, source, mode, method",
                              "What the last pull was. Always 1."};
const MetricSpec kPullRuns = {
    "sstferry_pull_runs_total", kCounter, "target, status",
    "Pulls that have ended, by end state.", true};
const MetricSpec kPullFailuresInRow = {
    "sstferry_pull_consecutive_failures", kGauge, "target",
    "Pulls that have ended with another state than OK since the last success.",
    true};
const MetricSpec kPullRetries = {
    "sstferry_pull_retries_total", kCounter, "target",
    "Connections that were lost and made again.", true};
const MetricSpec kPullWireBytes = {
    "sstferry_pull_wire_bytes_total", kCounter, "target",
    "Bytes received from the source.", true};
const MetricSpec kPullLastSuccess = {
    "sstferry_pull_last_success_timestamp_seconds", kGauge, "target",
    "Time at which a pull last ended with OK. 0: none has.", true};
const MetricSpec kPullLastEnd = {
    "sstferry_pull_last_run_timestamp_seconds", kGauge, "target",
    "Time at which a pull last ended. 0: none has.", true};
const MetricSpec kPullReplicaTaken = {
    "sstferry_pull_replica_snapshot_timestamp_seconds", kGauge, "target",
    "Time of the source's snapshot that the target holds, by the source's "
    "clock. Absent: the target holds none, or its time is not known.",
    true};
const MetricSpec kPullReplicaFault = {
    "sstferry_pull_replica_fault", kGauge, "target",
    "What is known to be wrong with the target. 0: nothing. 1: it differs from "
    "its source. 2: it is damaged."};
const MetricSpec kPullRunning = {
    "sstferry_pull_running", kGauge, "target", "1 while a pull runs."};
const MetricSpec kPullPlannedBytes = {
    "sstferry_pull_planned_bytes", kGauge, "target",
    "Estimated bytes of the pull that runs or ran last."};
const MetricSpec kPullDoneBytes = {
    "sstferry_pull_done_bytes", kGauge, "target",
    "Part of the planned bytes that is done."};
const MetricSpec kPullDuration = {
    "sstferry_pull_duration_seconds", kGauge, "target",
    "Duration of the last pull."};
const MetricSpec kPullBytes = {
    "sstferry_pull_bytes", kGauge, "target, kind",
    "Bytes of the last transfer by kind."};
const MetricSpec kPullEntries = {
    "sstferry_pull_entries", kGauge, "target",
    "Entries that the last transfer moved."};
const MetricSpec kPullStages = {
    "sstferry_pull_stage_seconds", kGauge, "target, side, stage",
    "Time that the last pull spent in each stage, per lane."};
const MetricSpec kPullWriteBlocked = {
    "sstferry_pull_write_blocked_seconds", kGauge, "target, percentile",
    "Upper bounds of the time for which an ingestion of the last refresh "
    "blocked writers."};
const MetricSpec kPullOutage = {
    "sstferry_pull_outage_seconds", kGauge, "target",
    "Time for which the last swap kept the target out of service."};
const MetricSpec kPullCompactionDebt = {
    "sstferry_pull_compaction_debt_bytes", kGauge, "target",
    "Bytes that compactions of the target still had to rewrite at the end of "
    "the last refresh."};
const MetricSpec kPullPeakMemory = {
    "sstferry_pull_peak_memory_bytes", kGauge, "target",
    "Largest resident memory of the last pull."};

}  // namespace metric

const std::vector<const MetricSpec*>& AllMetrics() {
  static const std::vector<const MetricSpec*> all = {
      &metric::kBuildInfo,          &metric::kServeTransfers,
      &metric::kServeInterruptions, &metric::kServeActive,
      &metric::kServeEntries,       &metric::kServeSstBytes,
      &metric::kServeWireBytes,     &metric::kServeStages,
      &metric::kServeSnapshots,     &metric::kServePinnedBytes,
      &metric::kServeOldestSnapshot, &metric::kServeDiskFree,
      &metric::kServeDiskSize,      &metric::kServeMinFree,
      &metric::kServeLastSuccess,   &metric::kPullInfo,
      &metric::kPullRuns,           &metric::kPullFailuresInRow,
      &metric::kPullRetries,        &metric::kPullWireBytes,
      &metric::kPullLastSuccess,    &metric::kPullLastEnd,
      &metric::kPullReplicaTaken,   &metric::kPullReplicaFault,
      &metric::kPullRunning,
      &metric::kPullPlannedBytes,   &metric::kPullDoneBytes,
      &metric::kPullDuration,       &metric::kPullBytes,
      &metric::kPullEntries,        &metric::kPullStages,
      &metric::kPullWriteBlocked,   &metric::kPullOutage,
      &metric::kPullCompactionDebt, &metric::kPullPeakMemory,
  };
  return all;
}

const MetricSpec* FindMetric(const char* name) {
  for (const MetricSpec* spec : AllMetrics()) {
    if (std::strcmp(spec->name, name) == 0) {
      return spec;
    }
  }
  return nullptr;
}

}  // namespace sstferry
