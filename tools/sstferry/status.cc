// Implements the command sstferry status.
#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <optional>

#include <nlohmann/json.hpp>

#include "format/printable.h"
#include "format/quantity.h"
#include "sstferry/options.h"
#include "sstferry/transport.h"
#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/console.h"
#include "tools/sstferry/job_status.h"
#include "tools/sstferry/metrics_file.h"
#include "tools/sstferry/operation_runner.h"
#include "tools/sstferry/progress.h"
#include "tools/sstferry/result_json.h"
#include "tools/sstferry/run.h"
#include "tools/sstferry/signals.h"
#include "tools/sstferry/standby_report.h"
#include "tools/sstferry/table.h"

namespace sstferry {
namespace {

using nlohmann::ordered_json;

std::string StatusBytes(uint64_t bytes) {
  return FormatBytes(bytes);
}

// Returns an id in hex. A server hides the last part of the ids of other
// clients; for such an id, returns only the first part.
std::string ShownId(const TransferId& id) {
  constexpr size_t kCut = 4;
  const bool cut = std::all_of(id.begin() + kCut, id.end(),
                               [](uint8_t byte) { return byte == 0; });
  return ToHex(id).substr(0, cut ? 2 * kCut : 2 * id.size());
}

uint64_t PinnedBytes(const StatusReport& report) {
  uint64_t bytes = 0;
  for (const RetainedSnapshot& snapshot : report.snapshots) {
    bytes += snapshot.pinned_bytes;
  }
  return bytes;
}

std::string FollowersText(const std::vector<FollowerState>& followers) {
  std::vector<std::vector<std::string>> rows = {
      {"DATABASE", "BEHIND", "LAG", "HELD", "CUTS", "LAST CUT", "FOLLOWER"}};
  for (const FollowerState& follower : followers) {
    rows.push_back({Printable(follower.database),
                    StatusBytes(follower.behind_bytes),
                    std::to_string(follower.behind_millis) + " ms",
                    StatusBytes(follower.held_bytes),
                    std::to_string(follower.cuts),
                    follower.cut == CutReason::kNone
                        ? "-"
                        : CutReasonName(follower.cut),
                    Printable(follower.target)});
  }
  return Table(rows);
}

std::string SourceText(const std::string& place, const StatusReport& report) {
  std::string text = "source: " + place + "\n";
  if (!report.snapshots.empty()) {
    std::vector<std::vector<std::string>> rows = {
        {"ID", "DATABASE", "SEQUENCE", "AGE", "TTL LEFT", "READERS",
         "PINNED", "TARGET"}};
    for (const RetainedSnapshot& snapshot : report.snapshots) {
      // A source that was started over ssh has no database name. Shows the last
      // component of its directory instead.
      const std::string name = snapshot.database == kStdioDatabase
                                   ? place.substr(place.rfind('/') + 1)
                                   : Printable(snapshot.database);
      rows.push_back(
          {ShownId(snapshot.transfer_id), name,
           std::to_string(snapshot.snapshot_sequence),
           FormatClock(static_cast<double>(snapshot.age_seconds)),
           snapshot.readers > 0
               ? "in use"
               : FormatClock(static_cast<double>(snapshot.ttl_left_seconds)),
           std::to_string(snapshot.readers),
           StatusBytes(snapshot.pinned_bytes),
           snapshot.target.empty() ? "-" : Printable(snapshot.target)});
    }
    text += Table(rows);
  }
  if (!report.followers.empty()) {
    text += FollowersText(report.followers);
  }
  const size_t count = report.snapshots.size();
  text += count == 0 ? std::string("no snapshot is retained or in use") +
                           (report.is_server ? ""
                                             : "; followers are in the status "
                                               "of a server, not here")
                     : FormatCount(count, "snapshot") +
                           (count == 1 ? " pins " : " pin ") +
                           StatusBytes(PinnedBytes(report));
  if (report.foreign_snapshots > 0) {
    text += "; not shown: " +
            FormatCount(report.foreign_snapshots, "snapshot") +
            " of other accounts\nnext: sudo -u " +
            report.foreign_owner + " sstferry status " + place;
  }
  return text + "\n";
}

std::string UnfinishedText(const UnfinishedPull& pull) {
  std::string text = pull.running ? "running: " : "unfinished: ";
  if (pull.transfer_id.empty()) {
    text += pull.running ? "a pull has just begun" : "nothing was recorded";
  } else {
    std::array<char, 16> percent{};
    std::snprintf(percent.data(), percent.size(), "%.1f", pull.percent());
    text += std::string(percent.data()) + " % of about " +
            StatusBytes(pull.planned_bytes) + " recorded, " +
            FormatCount(pull.chunks, "chunk") + " with " +
            StatusBytes(pull.sst_bytes) + ", of transfer " + pull.transfer_id +
            " from " + Printable(pull.source) + " at sequence " +
            std::to_string(pull.snapshot_sequence);
    text += pull.snapshot_taken_at.empty()
                ? ""
                : ", taken at " + Printable(pull.snapshot_taken_at);
  }
  text += pull.all_received ? "; only the last steps are missing" : "";
  if (!pull.damage.empty()) {
    text += "; the next pull starts over: " + Printable(pull.damage);
  }
  return text + "\n";
}

std::string CompletedText(const std::string& label,
                          const CompletedPull& pull) {
  std::string text = label;
  if (pull.age_seconds.has_value()) {
    text += ", " + FormatClock(static_cast<double>(*pull.age_seconds)) + " old";
  } else if (pull.as_of_seconds.has_value()) {
    text += ", of unknown age, because its time is ahead of this machine's "
            "clock";
  }
  text += ": ";
  if (!pull.snapshot_taken_at.empty()) {
    text += "as of " + pull.snapshot_taken_at + ", ";
  }
  text += "from " + pull.source;
  if (pull.snapshot_sequence.has_value()) {
    text += " at sequence " + std::to_string(*pull.snapshot_sequence);
  }
  text += "; transfer " + pull.transfer_id + ", finished " + pull.finished_at;
  constexpr uint64_t kWrongSourceClockSeconds = 5;
  if (pull.source_ahead_seconds >= kWrongSourceClockSeconds) {
    text += "; the clock of the source was at least " +
            FormatMillis(
                static_cast<int64_t>(pull.source_ahead_seconds) * 1000) +
            " ahead of this machine's, so the age counts from the end of the "
            "transfer";
  }
  return Printable(text);
}

std::string TargetText(const std::string& place, const TargetState& target) {
  std::string text = "target: " + place + "\n";
  if (!target.fault.empty()) {
    text += std::string(ReplicaHealthName(target.health)) +
            (target.fault_found_at.empty()
                 ? ""
                 : ", found " + target.fault_found_at) +
            ": " + Printable(target.fault) + "\n";
  }
  if (target.complete.has_value()) {
    const std::string& promoted = target.complete->promoted_at;
    text += CompletedText(!promoted.empty()
                              ? "a database, promoted at " + promoted
                          : target.fault.empty() ? "complete"
                                                 : "last transfer",
                          *target.complete) +
            "\n";
  }
  if (target.previous.has_value()) {
    text += CompletedText("before this refresh", *target.previous) + "\n";
  }
  for (const OldDirectory& old : target.old_directories) {
    text += "old: " + Printable(old.path) + ", replaced at " +
            old.replaced_at + "; its removal frees " +
            FormatBytes(old.own_bytes) + "\n";
  }
  if (target.stands_at_zero) {
    text += std::string("warning: it is ") + kAtZero +
            "; the next refresh repairs it\n";
  }
  if (target.awaits_after_swap) {
    text += "swap: the databases were exchanged, but --after-swap failed or "
            "has not run, so the application may not run; run the same "
            "command again\n";
  } else if (target.has_leftover) {
    text += "leftover: " + place +
            ".sstferry, which an ended pull did not remove; run the same "
            "command again to remove it\n";
  }
  if (target.unfinished.has_value()) {
    text += UnfinishedText(*target.unfinished);
  }
  if (!target.next.empty()) {
    text += "next: " + Printable(target.next) + "\n";
  } else if (target.unfinished.has_value() ? !target.unfinished->running
                                           : target.has_leftover) {
    text += "next: run the same command again\n";
  }
  return text;
}

// Returns a table with a row for each replica of a mirror. For replicas that
// are not complete, adds a line with the error or with the command that shows
// details.
std::string MirrorText(const std::string& place, const StatusReport& report) {
  std::string text =
      "mirror: " + place + ", " +
      FormatCount(report.replicas.size(), "replica", "replicas") + "\n";
  std::vector<std::vector<std::string>> rows = {
      {"NAME", "HEALTH", "AS OF", "SOURCE"}};
  std::string next;
  for (const ReplicaStatus& replica : report.replicas) {
    const std::optional<CompletedPull>& pull =
        replica.state.complete.has_value() ? replica.state.complete
                                           : replica.state.previous;
    rows.push_back(
        {Printable(replica.name),
         replica.status.ok() ? ReplicaHealthName(replica.state.health)
                             : "unknown",
         pull.has_value() && !pull->snapshot_taken_at.empty()
             ? Printable(pull->snapshot_taken_at)
             : "-",
         pull.has_value() ? Printable(pull->source) : "-"});
    if (!replica.status.ok()) {
      next += Printable(replica.name + ": " + MessageOf(replica.status)) + "\n";
    } else if (replica.state.health != ReplicaHealth::kComplete) {
      next += "details: sstferry status " +
              Printable(place + "/" + replica.name) + "\n";
    }
  }
  return text + (report.replicas.empty() ? "" : Table(rows)) + next;
}

// Formats the state of a standby. If `is_wrong` is true, leaves out the next
// command, because TargetText() already contains one.
std::string StandbyText(const std::string& place, const StandbyState& state,
                        bool is_wrong) {
  return "standby: " + StandbyLine(state) + "\n" + AuditText(state) +
         (state.is_followed ? "\nfollowed: a follower is running\n"
          : is_wrong        ? "\n"
          : state.is_promoted
              ? "\npromotion: interrupted\nnext: sstferry promote " +
                    ShellWord(place) + "\n"
              : "\nfollowed: no follower is running\nnext: start its unit, "
                "or sstferry follow " +
                    ShellWord(Printable(state.source)) + " " +
                    ShellWord(place) +
                    " with the options that it had, such as --tls\n");
}

ordered_json SourceJson(const StatusReport& report) {
  ordered_json json = {{"snapshots", ordered_json::array()},
                       {"pinned_bytes", PinnedBytes(report)},
                       {"foreign_snapshots", report.foreign_snapshots}};
  for (const RetainedSnapshot& snapshot : report.snapshots) {
    json["snapshots"].push_back(
        {{"id", ShownId(snapshot.transfer_id)},
         {"database", snapshot.database},
         {"snapshot_sequence", snapshot.snapshot_sequence},
         {"age_seconds", snapshot.age_seconds},
         {"ttl_left_seconds", snapshot.ttl_left_seconds},
         {"readers", snapshot.readers},
         {"pinned_bytes", snapshot.pinned_bytes},
         {"target", snapshot.target}});
  }
  json["followers"] = ordered_json::array();
  for (const FollowerState& follower : report.followers) {
    json["followers"].push_back(
        {{"database", follower.database},
         {"target", follower.target},
         {"behind_bytes", follower.behind_bytes},
         {"behind_millis", follower.behind_millis},
         {"held_bytes", follower.held_bytes},
         {"cuts", follower.cuts},
         {"cut_reason", OrNull(follower.cut != CutReason::kNone,
                               CutReasonName(follower.cut))}});
  }
  return json;
}

ordered_json UnfinishedJson(const UnfinishedPull& pull) {
  const bool has_record = !pull.transfer_id.empty();
  return {{"transfer_id", OrNull(pull.transfer_id)},
          {"source", OrNull(pull.source)},
          {"snapshot_sequence", OrNull(has_record, pull.snapshot_sequence)},
          {"snapshot_taken_at", OrNull(pull.snapshot_taken_at)},
          {"percent", OrNull(has_record, pull.percent())},
          {"planned_bytes", OrNull(has_record, pull.planned_bytes)},
          {"planned_bytes_done",
           OrNull(has_record, pull.planned_bytes_done)},
          {"chunks", OrNull(has_record, pull.chunks)},
          {"sst_bytes", OrNull(has_record, pull.sst_bytes)},
          {"all_received", OrNull(has_record, pull.all_received)},
          {"damage", OrNull(pull.damage)}};
}

ordered_json CompletedJson(const std::optional<CompletedPull>& pull) {
  if (!pull.has_value()) {
    return nullptr;
  }
  return {{"transfer_id", pull->transfer_id},
          {"source", OrNull(pull->source)},
          {"snapshot_sequence", OrNull(pull->snapshot_sequence)},
          {"snapshot_taken_at", OrNull(pull->snapshot_taken_at)},
          {"age_seconds", OrNull(pull->age_seconds)},
          {"source_ahead_seconds", pull->source_ahead_seconds},
          {"finished_at", OrNull(pull->finished_at)},
          {"promoted_at", OrNull(pull->promoted_at)}};
}

ordered_json TargetJson(const TargetState& target) {
  ordered_json json;
  const bool running =
      target.unfinished.has_value() && target.unfinished->running;
  const bool is_wrong = target.health == ReplicaHealth::kDifferent ||
                        target.health == ReplicaHealth::kDamaged;
  json["state"] = running    ? "running"
                  : is_wrong ? ReplicaHealthName(target.health)
                  : target.unfinished.has_value() ? "unfinished"
                                                  : "complete";
  json["health"] = ReplicaHealthName(target.health);
  json["fault"] = nullptr;
  if (is_wrong) {
    json["fault"] = {{"found_at", OrNull(target.fault_found_at)},
                     {"what", target.fault}};
  }
  json["complete"] = CompletedJson(target.complete);
  json["previous"] = CompletedJson(target.previous);
  json["unfinished"] = nullptr;
  if (target.unfinished.has_value()) {
    json["unfinished"] = UnfinishedJson(*target.unfinished);
  }
  json["old"] = ordered_json::array();
  for (const OldDirectory& old : target.old_directories) {
    json["old"].push_back(
        {{"path", old.path},
         {"replaced_at", old.replaced_at},
         {"own_bytes", old.own_bytes}});
  }
  json["stands_at_zero"] = target.stands_at_zero;
  json["leftover"] = target.has_leftover;
  json["awaits_after_swap"] = target.awaits_after_swap;
  json["next"] = OrNull(target.next);
  return json;
}

}  // namespace

std::string StatusText(const std::string& place, const StatusReport& report) {
  // A replica may also be the source of other replicas. Shows it as a source
  // only if it has snapshots or followers.
  const bool is_used = !report.snapshots.empty() || !report.followers.empty() ||
                       report.foreign_snapshots > 0;
  const bool is_replica = report.is_target || report.standby.has_value();
  return (report.is_target ? TargetText(place, report.target) : "") +
         (report.is_source && (is_used || !is_replica)
              ? SourceText(place, report)
              : "") +
         (report.is_mirror ? MirrorText(place, report) : "") +
         (report.standby
              ? StandbyText(place, *report.standby,
                            !report.target.next.empty())
              : "");
}

std::string StatusToJson(const std::string& place,
                         const StatusReport& report) {
  ordered_json json = ResultJson("status", report.status, place);
  json["place"] = place;
  json["source"] = nullptr;
  json["target"] = nullptr;
  if (report.status.ok() && report.is_source) {
    json["source"] = SourceJson(report);
  }
  if (report.status.ok() && report.is_target) {
    json["target"] = TargetJson(report.target);
  }
  json["replicas"] = nullptr;
  if (report.is_mirror) {
    json["replicas"] = ordered_json::array();
    for (const ReplicaStatus& replica : report.replicas) {
      ordered_json item = TargetJson(replica.state);
      item["name"] = replica.name;
      item["problem"] =
          OrNull(!replica.status.ok(), MessageOf(replica.status));
      json["replicas"].push_back(std::move(item));
    }
  }
  json["standby"] = nullptr;
  if (report.status.ok() && report.standby) {
    json["standby"] = StandbyMembers(*report.standby);
  }
  return DumpJson(json);
}

namespace {

// Shows all jobs of a host file.
int ShowJobs(const StatusArguments& status) {
  HostFile host;
  const rocksdb::Status read = ReadHostFile(status.host_file, &host);
  if (read.IsInvalidArgument()) {
    return ReportUsage("status", read);
  }
  Console console(status.common);
  if (!read.ok()) {
    return FinishCommand("status", read, "", "", &console);
  }
  const std::vector<JobState> jobs =
      ReadJobStates(host, std::time(nullptr));
  rocksdb::Status written;
  if (!status.metrics_file.empty()) {
    written =
        WriteMetricsFile(status.metrics_file, JobStatesMetrics(host, jobs));
  }
  const rocksdb::Status found =
      written.ok() ? StatusOfJobs(host, jobs) : written;
  return FinishCommand("status", found, "",
                       status.common.json ? JobStatesJson(host, jobs)
                                          : JobStatesText(host, jobs),
                       &console);
}

}  // namespace

int RunStatus(const std::vector<std::string>& arguments) {
  StatusArguments parsed;
  const rocksdb::Status usage = ParseStatus(arguments, &parsed);
  if (!usage.ok()) {
    return ReportUsage("status", usage);
  }
  if (parsed.all) {
    return ShowJobs(parsed);
  }
  Console console(parsed.common);
  LogTlsWarnings(parsed.options.tls, &console);
  const std::string place = parsed.options.where.ToString();
  const std::unique_ptr<StatusQuery> query = MakeStatusQuery(parsed.options);
  StatusReport report;
  rocksdb::Status status;
  {
    const StopWatcher watcher([&query] { query->Cancel(); });
    status = query->Run(&report);
  }
  const std::string text =
      parsed.common.json ? StatusToJson(place, report)
      : status.ok() || report.is_mirror
          ? StatusText(Printable(place), report)
          : "";
  return FinishCommand("status", status, "", text, &console);
}

}  // namespace sstferry
