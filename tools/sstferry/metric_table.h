// Defines every metric that sstferry publishes: its name, type, labels and
// help. docs/metrics.md explains the metrics. A test compares this file with
// docs/metrics.md.
#pragma once

#include <vector>

namespace sstferry {

enum class MetricKind { kCounter, kGauge };

struct MetricSpec {
  // Adds the new metric to All(). `with_labels` are the names of its labels,
  // separated by ", ". If `does_last` is true, a run copies the metric's old
  // value from the metrics file.
  MetricSpec(const char* of_name, MetricKind of_kind, const char* with_labels,
             const char* with_help, bool does_last = false)
      : name(of_name),
        kind(of_kind),
        labels(with_labels),
        help(with_help),
        lasts(does_last) {
    All().push_back(this);
  }
  MetricSpec(const MetricSpec&) = delete;
  MetricSpec& operator=(const MetricSpec&) = delete;

  // Returns all metrics in the order of their definitions in this file. The
  // output has the same order.
  static std::vector<const MetricSpec*>& All() {
    static std::vector<const MetricSpec*> all;
    return all;
  }

  const char* const name;
  const MetricKind kind;
  const char* const labels;
  const char* const help;
  const bool lasts;
};

namespace metric {

inline constexpr MetricKind kCounter = MetricKind::kCounter;
inline constexpr MetricKind kGauge = MetricKind::kGauge;

inline const MetricSpec kBuildInfo = {
    "sstferry_build_info", kGauge,
    "version, rocksdb, protocol, listen or target",
    "Versions of this program. Always 1."};
inline const MetricSpec kCertificateEnd = {
    "sstferry_tls_certificate_not_after_timestamp_seconds", kGauge,
    "certificate, listen or target",
    "Time at which the first certificate of --tls-cert (cert) or the last of "
    "--tls-ca (ca) expires."};

inline const MetricSpec kSourceTransfers = {
    "sstferry_source_transfers_total", kCounter, "database, status",
    "Transfers that have ended, by end state."};
inline const MetricSpec kSourceInterruptions = {
    "sstferry_source_interruptions_total", kCounter, "database",
    "Times that a target disconnected and the source retained the snapshot."};
inline const MetricSpec kSourceActive = {
    "sstferry_source_active_transfers", kGauge, "database",
    "Transfers whose target is connected."};
inline const MetricSpec kSourceEntries = {
    "sstferry_source_entries_total", kCounter, "database", "Entries sent."};
inline const MetricSpec kSourceSstBytes = {
    "sstferry_source_sst_bytes_total", kCounter, "database",
    "Bytes of files and chunks sent, before compression."};
inline const MetricSpec kSourceWireBytes = {
    "sstferry_source_wire_bytes_total", kCounter, "database",
    "Bytes sent to targets."};
inline const MetricSpec kSourceStages = {
    "sstferry_source_stage_seconds_total", kCounter, "database, stage",
    "Time spent in each stage, of all lanes together."};
inline const MetricSpec kSourceSnapshots = {
    "sstferry_source_snapshots", kGauge, "database",
    "Snapshots in use or retained."};
inline const MetricSpec kSourcePinnedBytes = {
    "sstferry_source_snapshot_pinned_bytes", kGauge, "database",
    "Bytes of the files that snapshots keep from being deleted."};
inline const MetricSpec kSourceOldestSnapshot = {
    "sstferry_source_snapshot_oldest_age_seconds", kGauge, "database",
    "Age of the oldest snapshot. 0: no snapshot."};
inline const MetricSpec kSourceDiskFree = {
    "sstferry_source_disk_free_bytes", kGauge, "database",
    "Free bytes of the file system that holds the snapshots."};
inline const MetricSpec kSourceDiskSize = {
    "sstferry_source_disk_size_bytes", kGauge, "database",
    "Size of the file system that holds the snapshots."};
inline const MetricSpec kSourceMinFree = {
    "sstferry_source_min_free_ratio", kGauge, "database",
    "Share of free disk space below which snapshots are released "
    "(--min-free)."};
inline const MetricSpec kSourceLastSuccess = {
    "sstferry_source_last_success_timestamp_seconds", kGauge, "database",
    "Time at which a transfer last ended with OK. 0: never since the server "
    "started."};
inline const MetricSpec kSourceUnknownOptions = {
    "sstferry_source_unknown_options", kGauge, "database",
    "Options that this version does not know in the database's OPTIONS file, "
    "as a transfer last read it."};

inline const MetricSpec kSourceFollowers = {
    "sstferry_source_followers", kGauge, "database",
    "Standbys that follow the database."};
inline const MetricSpec kSourceFollowersBehind = {
    "sstferry_source_followers_behind_bytes", kGauge, "database",
    "WAL bytes that the slowest standby has not received."};
inline const MetricSpec kSourceFollowersLag = {
    "sstferry_source_followers_behind_seconds", kGauge, "database",
    "Time since the slowest standby last had all WAL bytes."};
inline const MetricSpec kSourceHeldWals = {
    "sstferry_source_held_wal_bytes", kGauge, "database",
    "Bytes of WALs that stay readable for standbys that lag (--max-held)."};
inline const MetricSpec kSourceReadWals = {
    "sstferry_source_read_wal_bytes_total", kCounter, "database",
    "Bytes of WALs read, once for all standbys."};

inline const MetricSpec kSourceChunksBuilt = {
    "sstferry_source_chunks_built_total", kCounter, "listen",
    "Chunks that the server built."};
inline const MetricSpec kSourceChunksFromStore = {
    "sstferry_source_chunks_from_store_total", kCounter, "listen",
    "Chunks that the server sent from its store (--spool), because several "
    "targets read one plan."};
inline const MetricSpec kSourceWritten = {
    "sstferry_source_written_timestamp_seconds", kGauge, "listen",
    "Time at which the file of --metrics-file was written. Only in that file."};

inline const MetricSpec kReplicaInfo = {
    "sstferry_replica_info", kGauge, "target, source, mode, method",
    "Properties of the last pull. Always 1."};
inline const MetricSpec kReplicaRuns = {
    "sstferry_replica_runs_total", kCounter, "target, status",
    "Pulls that have ended, by end state.", true};
inline const MetricSpec kReplicaFailuresInRow = {
    "sstferry_replica_consecutive_failures", kGauge, "target",
    "Pulls that have ended with another state than OK since the last success.",
    true};
inline const MetricSpec kReplicaRetries = {
    "sstferry_replica_retries_total", kCounter, "target",
    "Connections that were lost and made again.", true};
inline const MetricSpec kReplicaWireBytes = {
    "sstferry_replica_wire_bytes_total", kCounter, "target",
    "Bytes received from the source.", true};
inline const MetricSpec kReplicaLastSuccess = {
    "sstferry_replica_last_success_timestamp_seconds", kGauge, "target",
    "Time at which a pull last ended with OK. 0: never.", true};
inline const MetricSpec kReplicaLastEnd = {
    "sstferry_replica_last_run_timestamp_seconds", kGauge, "target",
    "Time at which a pull last ended. 0: never.", true};
inline const MetricSpec kReplicaTaken = {
    "sstferry_replica_snapshot_timestamp_seconds", kGauge, "target",
    "Time of the source's snapshot that the target holds, by the source's "
    "clock, or the end of its transfer if that is earlier. Absent: the target "
    "has no snapshot, or the time is not known.",
    true};
inline const MetricSpec kReplicaFault = {
    "sstferry_replica_fault", kGauge, "target",
    "Known fault of the target. 0: no fault. 1: it differs from its source. 2: "
    "it is damaged."};
inline const MetricSpec kReplicaDiskFree = {
    "sstferry_replica_disk_free_bytes", kGauge, "target",
    "Free bytes of the file system that holds the target."};
inline const MetricSpec kReplicaDiskSize = {
    "sstferry_replica_disk_size_bytes", kGauge, "target",
    "Size of the file system that holds the target."};
inline const MetricSpec kReplicaMinFree = {
    "sstferry_replica_min_free_ratio", kGauge, "target",
    "Share of free disk space that a refresh or swap keeps (--min-free)."};
inline const MetricSpec kLastRunDuration = {
    "sstferry_replica_last_run_duration_seconds", kGauge, "target",
    "Duration of the last pull."};
inline const MetricSpec kLastRunBytes = {
    "sstferry_replica_last_run_bytes", kGauge, "target, kind",
    "Bytes of the last transfer by kind."};
inline const MetricSpec kLastRunEntries = {
    "sstferry_replica_last_run_entries", kGauge, "target",
    "Entries that the last transfer moved."};
inline const MetricSpec kLastRunStages = {
    "sstferry_replica_last_run_stage_seconds", kGauge, "target, side, stage",
    "Time that the last pull spent in each stage, per lane."};
inline const MetricSpec kLastRunWriteBlocked = {
    "sstferry_replica_last_run_write_blocked_seconds", kGauge,
    "target, percentile",
    "Upper bounds of the time for which an ingestion of the last refresh "
    "blocked writers."};
inline const MetricSpec kLastRunOutage = {
    "sstferry_replica_last_run_outage_seconds", kGauge, "target",
    "Time for which the last swap kept the target out of service."};
inline const MetricSpec kReplicaCompactionDebt = {
    "sstferry_replica_compaction_debt_bytes", kGauge, "target",
    "Bytes that compactions of the target still had to rewrite at the end of "
    "the last refresh."};
inline const MetricSpec kLastRunPeakMemory = {
    "sstferry_replica_last_run_peak_memory_bytes", kGauge, "target",
    "Largest resident memory of the last pull."};

inline const MetricSpec kStandbyLag = {
    "sstferry_standby_lag_seconds", kGauge, "target",
    "Age of the newest state of the source that the standby holds completely, "
    "by both clocks. Absent: not known."};
inline const MetricSpec kStandbyViewAge = {
    "sstferry_standby_view_age_seconds", kGauge, "target",
    "Age of the newest view (--view-every), by both clocks. Absent: no view."};
inline const MetricSpec kStandbyBehind = {
    "sstferry_standby_behind_bytes", kGauge, "target",
    "Bytes of WALs that the source has and the standby does not."};
inline const MetricSpec kStandbyReplay = {
    "sstferry_standby_replay_bytes", kGauge, "target",
    "Bytes of WALs that an application replays when it opens the promoted "
    "standby."};
inline const MetricSpec kStandbyReceived = {
    "sstferry_standby_received_bytes_total", kCounter, "target",
    "Bytes of WALs received."};
inline const MetricSpec kStandbyHeard = {
    "sstferry_standby_heard_timestamp_seconds", kGauge, "target",
    "Time of the source's last answer, by the standby's clock. Absent: no "
    "answer."};
inline const MetricSpec kStandbySourceOpen = {
    "sstferry_standby_source_open", kGauge, "target",
    "1: the source's last answer said that a process has its database open. "
    "0: no process has. Absent: unknown, or the source has not answered."};
inline const MetricSpec kStandbyLastCut = {
    "sstferry_standby_last_cut_timestamp_seconds", kGauge, "target",
    "Time of the last cut, by the standby's clock. Absent: no cut yet."};
inline const MetricSpec kStandbyCuts = {
    "sstferry_standby_cuts_total", kCounter, "target, reason",
    "Cuts since the standby was made, by reason."};
inline const MetricSpec kStandbyLost = {
    "sstferry_standby_lost_sequences", kGauge, "target",
    "Sequence numbers that the standby had and the source lacked when it was "
    "last reopened; their WALs are kept beside the standby."};
inline const MetricSpec kStandbyUnknownOptions = {
    "sstferry_standby_unknown_options", kGauge, "target",
    "Options in the OPTIONS of the last cut that this version does not know."};
inline const MetricSpec kStandbyFault = {
    "sstferry_standby_fault", kGauge, "target",
    "1 if the standby is known to be damaged or to differ from its source, "
    "else 0."};
inline const MetricSpec kAuditOldest = {
    "sstferry_standby_audit_oldest_timestamp_seconds", kGauge, "target",
    "Time after which all audited entries of the standby were compared with "
    "its source's. 0: some of them were never compared."};
inline const MetricSpec kAuditSlices = {
    "sstferry_standby_audit_slices_total", kCounter, "target",
    "Slices of the key space that were audited, since the standby was made."};
inline const MetricSpec kAuditEntries = {
    "sstferry_standby_audit_entries_total", kCounter, "target",
    "Entries that audits compared."};
inline const MetricSpec kAuditDifferences = {
    "sstferry_standby_audit_differences_total", kCounter, "target",
    "Audits that found a difference or damage."};
inline const MetricSpec kAuditSkipped = {
    "sstferry_standby_audit_skipped_cuts_total", kCounter, "target",
    "Cuts that were due and could not be audited."};
inline const MetricSpec kLogPut = {
    "sstferry_log_put_timestamp_seconds", kGauge, "target",
    "Newest time of the source that the archive can restore. Absent: no such "
    "time."};
inline const MetricSpec kLogSegments = {
    "sstferry_log_segments_total", kCounter, "target",
    "Segments put into the archive."};
inline const MetricSpec kLogBytes = {
    "sstferry_log_bytes_total", kCounter, "target", "Bytes of the segments put "
                                                    "into the archive."};
inline const MetricSpec kLogGaps = {
    "sstferry_log_gaps_total", kCounter, "target",
    "Windows of restorable times that ended: at barriers and outages."};
inline const MetricSpec kLogUnputBytes = {
    "sstferry_log_unput_bytes", kGauge, "target",
    "Bytes of WALs that were read and are not known to be in the archive."};
inline const MetricSpec kLogUnput = {
    "sstferry_log_unput_timestamp_seconds", kGauge, "target",
    "Time since which received WAL bytes, or the set before them, wait to be "
    "put into the archive. Absent: nothing waits."};
inline const MetricSpec kStandbyWritten = {
    "sstferry_standby_written_timestamp_seconds", kGauge, "target",
    "Time at which the file of --metrics-file was written. Only in that file."};

inline const MetricSpec kArchiveNewestSet = {
    "sstferry_archive_newest_set_timestamp_seconds", kGauge, "archive",
    "Time at which the newest whole set was pushed. 0: no whole set.", true};
inline const MetricSpec kArchiveSets = {
    "sstferry_archive_sets", kGauge, "archive", "Sets in the archive.", true};
inline const MetricSpec kArchiveDamagedSets = {
    "sstferry_archive_damaged_sets", kGauge, "archive",
    "Sets with a file that is missing or has other bytes.", true};
inline const MetricSpec kArchiveBytes = {
    "sstferry_archive_bytes", kGauge, "archive",
    "Bytes of the files in the archive.", true};
inline const MetricSpec kArchiveOrphanBytes = {
    "sstferry_archive_orphan_bytes", kGauge, "archive",
    "Bytes of files that no set names.", true};
inline const MetricSpec kArchiveLastCheck = {
    "sstferry_archive_last_check_timestamp_seconds", kGauge, "archive",
    "Time at which a check last found everything in order. 0: never.",
    true};
inline const MetricSpec kArchivePartRead = {
    "sstferry_archive_part_read_timestamp_seconds", kGauge, "archive, part",
    "Time at which a check with --read-data last read this part of the bytes "
    "and found it right. 0: never.",
    true};
inline const MetricSpec kArchiveLastDrill = {
    "sstferry_archive_last_drill_timestamp_seconds", kGauge, "archive",
    "Time at which a drill last restored the newest set and, if the archive "
    "has a log, a time of the log. 0: never.", true};
inline const MetricSpec kArchiveDrillSeconds = {
    "sstferry_archive_drill_seconds", kGauge, "archive",
    "Time that the last good drill took until the database was open.", true};
inline const MetricSpec kArchiveLastPush = {
    "sstferry_archive_last_push_timestamp_seconds", kGauge, "archive",
    "Time at which a push by this machine last made a whole set. 0: never.",
    true};
inline const MetricSpec kArchivePushSeconds = {
    "sstferry_archive_push_seconds", kGauge, "archive",
    "Time that the last successful push by this machine took.", true};
inline const MetricSpec kArchivePushBytes = {
    "sstferry_archive_push_bytes", kGauge, "archive",
    "Bytes of the set of the last successful push by this machine.", true};
inline const MetricSpec kArchivePushUploaded = {
    "sstferry_archive_push_uploaded_bytes", kGauge, "archive",
    "Bytes that the last successful push by this machine uploaded.", true};
inline const MetricSpec kArchiveLastPrune = {
    "sstferry_archive_last_prune_timestamp_seconds", kGauge, "archive",
    "Time at which a prune by this machine last succeeded. 0: never.", true};
inline const MetricSpec kArchiveRunFailed = {
    "sstferry_archive_run_failed_timestamp_seconds", kGauge, "archive, action",
    "Time at which the last push, check, drill or prune by this machine "
    "failed. 0: the last one did not fail.", true};

inline const MetricSpec kJobLastSuccess = {
    "sstferry_job_last_success_timestamp_seconds", kGauge, "database, kind",
    "Time of the last success of a job; for a follower, time up to which it "
    "has all writes of its source. 0: never."};
inline const MetricSpec kJobLag = {
    "sstferry_job_lag_seconds", kGauge, "database, kind",
    "Age of a replica; for a follower, time that the oldest missing data has "
    "been waiting; for other jobs, time since the last success."};
inline const MetricSpec kJobProblem = {
    "sstferry_job_problem", kGauge, "database, kind",
    "1 if status --all reports a problem of the job, else 0."};

}  // namespace metric
}  // namespace sstferry
