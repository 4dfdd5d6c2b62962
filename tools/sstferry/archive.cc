// Implements the command sstferry archive.
#include <optional>

#include <nlohmann/json.hpp>

#include "format/printable.h"
#include "format/quantity.h"
#include "tools/sstferry/all_databases.h"
#include "tools/sstferry/archive_metrics.h"
#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/console.h"
#include "tools/sstferry/metrics_file.h"
#include "tools/sstferry/operation_runner.h"
#include "tools/sstferry/progress.h"
#include "tools/sstferry/result_json.h"
#include "tools/sstferry/run.h"
#include "tools/sstferry/signals.h"
#include "tools/sstferry/table.h"

namespace sstferry {
namespace {

using nlohmann::ordered_json;
using rocksdb::Status;

ordered_json Json(const ArchivedSet& set) {
  ordered_json json = {{"set", set.name},
                       {"pushed_at", set.pushed_at},
                       {"state", set.state},
                       {"problem", nullptr},
                       {"until", nullptr},
                       {"why", nullptr},
                       {"repairs", nullptr},
                       {"label", set.label},
                       {"host", set.host},
                       {"host_time", nullptr},
                       {"database_id", set.database_id},
                       {"snapshot_sequence", set.sequence},
                       {"column_families", set.families},
                       {"files", set.files},
                       {"bytes", set.bytes},
                       {"own_bytes", set.own_bytes},
                       {"sealed", set.is_sealed}};
  if (!set.problem.empty()) {
    json["problem"] = set.problem;
  }
  if (!set.until.empty()) {
    json["until"] = set.until;
  }
  if (!set.why.empty()) {
    json["why"] = set.why;
  }
  if (!set.repairs.empty()) {
    json["repairs"] = set.repairs;
  }
  if (!set.host_time.empty()) {
    json["host_time"] = set.host_time;
  }
  return json;
}

std::string SetTable(const ArchiveReport& report) {
  std::vector<std::vector<std::string>> rows = {
      {"SET", "STATE", "SIZE", "OWN", "FILES", "SEQUENCE", "LABEL"}};
  std::string problems;
  for (const ArchivedSet& set : report.sets) {
    rows.push_back({set.name,
                    set.state +
                        (set.until.empty() ? "" : ", not before " + set.until),
                    FormatBytes(set.bytes),
                    FormatBytes(set.own_bytes), std::to_string(set.files),
                    std::to_string(set.sequence), Printable(set.label)});
    if (!set.problem.empty()) {
      problems += set.name + ": " + Printable(set.problem) + "\n";
    }
  }
  return (report.sets.empty() ? "" : Table(rows)) + problems;
}

std::string InitText(const std::string& place, const ArchiveReport& report) {
  return "made: the archive " + place + ", with a grace of " +
         FormatClock(static_cast<double>(report.grace_seconds)) +
         "\nnext: sstferry archive push SOURCE " + ShellWord(place) + "\n";
}

// Returns the duration of an action and its rate: "took 9.05 s, 5.0 MB/s".
std::string Took(double seconds, uint64_t bytes) {
  std::string text = "took " + FormatTook(seconds);
  if (bytes > 0 && seconds > 0) {
    text += ", " +
            FormatBytes(static_cast<uint64_t>(
                static_cast<double>(bytes) / seconds)) +
            "/s";
  }
  return text;
}

std::string PushText(const ArchiveReport& report) {
  const ArchivedSet& set = report.sets.front();
  return "pushed: the set " + set.name + ", " + FormatBytes(set.bytes) +
         " in " + FormatCount(set.files, "file") + "; uploaded " +
         FormatBytes(report.uploaded_bytes) + " in " +
         FormatCount(report.uploaded_files, "file") + ", reused " +
         FormatBytes(report.reused_bytes) + "; " +
         Took(report.seconds, report.uploaded_bytes) + "\n";
}

std::string ListText(const std::string& place, const ArchiveReport& report) {
  std::string text = place + " has " +
                     FormatCount(report.sets.size(), "set") + "\n" +
                     SetTable(report);
  if (!report.is_checked) {
    text += "last check: " +
            (report.checked_age_seconds.has_value()
                 ? FormatClock(
                       static_cast<double>(*report.checked_age_seconds)) +
                       " ago"
                 : std::string("none, or its age is unknown")) +
            "\n";
  }
  for (const ArchiveWindow& window : report.windows) {
    text += "any time: " + window.begin + " to " + window.end +
            (window.why.empty() ? "" : ", then " + Printable(window.why)) +
            "\n";
  }
  return text;
}

std::string DrillText(const std::optional<ArchiveDrill>& drill) {
  if (!drill.has_value() || !drill->status.ok()) {
    return "";
  }
  std::string what = "the set " + drill->set;
  if (!drill->time.empty()) {
    what = "the time " + drill->time + " after " + what;
  } else if (!drill->same_as.empty()) {
    what += " with its log up to sequence " + std::to_string(drill->sequence);
  }
  return "drill: restored" + std::string(drill->is_opened ? " and opened " : " ") +
         what + ", " + FormatBytes(drill->bytes) + ", in " +
         FormatClock(drill->seconds) + "; " +
         (drill->same_as.empty() ? ""
                                 : "it has the same " +
                                       FormatCount(drill->entries.value_or(0), "entry",
                                                   "entries") +
                                       " as the set " + drill->same_as + "; ") +
         "it was checked as by pull --verify, and then removed\n";
}

ordered_json Json(const std::optional<ArchiveDrill>& drill) {
  if (!drill.has_value()) {
    return nullptr;
  }
  ordered_json json = {{"status", EndStateName(EndStateOf(drill->status))},
                       {"error", nullptr},
                       {"set", drill->set},
                       {"time", nullptr},
                       {"same_as", nullptr},
                       {"sequence", nullptr},
                       {"entries", nullptr},
                       {"bytes", drill->bytes},
                       {"seconds", drill->seconds},
                       {"opened", drill->is_opened}};
  if (!drill->time.empty()) {
    json["time"] = drill->time;
  }
  if (!drill->same_as.empty()) {
    json["same_as"] = drill->same_as;
  }
  if (drill->is_opened) {
    json["sequence"] = drill->sequence;
  }
  if (drill->entries.has_value()) {
    json["entries"] = *drill->entries;
  }
  if (!drill->status.ok()) {
    json["error"] = MessageOf(drill->status);
  }
  return json;
}

std::string CheckText(const std::string& place, const ArchiveReport& report) {
  std::string text = ListText(place, report);
  text += "objects: " + std::to_string(report.objects) + " with " +
          FormatBytes(report.bytes) + "; no set names " +
          std::to_string(report.orphans) + " of them, with " +
          FormatBytes(report.orphan_bytes) + "\n";
  if (report.read_files > 0) {
    text += "read: " + FormatBytes(report.read_bytes) + " in " +
            FormatCount(report.read_files, "file") + "; " +
            Took(report.seconds, report.read_bytes) + "\n";
  }
  if (report.segments > 0) {
    text += "log: " + FormatCount(report.segments, "segment") + " with " +
            FormatBytes(report.segment_bytes) + "; " +
            std::to_string(report.orphan_segments) +
            " of them follow no set\n";
  }
  text += DrillText(report.drill) + DrillText(report.log_drill) +
          DrillText(report.continued_drill);
  text += "newest whole set: " +
          (report.newest_age_seconds.has_value()
               ? FormatClock(static_cast<double>(*report.newest_age_seconds)) +
                     " old"
               : std::string("none, or its age is unknown")) +
          "\n";
  for (const std::string& problem : report.problems) {
    text += "problem: " + Printable(problem) + "\n";
  }
  return text;
}

std::string PruneText(const ArchiveOptions& options,
                      const ArchiveReport& report) {
  const char* const would = options.dry_run ? "would be " : "";
  std::string text =
      std::string(would) + "kept: " + FormatCount(report.kept_sets, "set") +
      (report.damaged_sets == 0
           ? ""
           : ", and " + std::to_string(report.damaged_sets) + " damaged") +
      "\n" + would + "deleted: " + FormatCount(report.dropped_sets, "set") +
      ", " + FormatCount(report.deleted_files, "file") + " of " +
      FormatBytes(report.deleted_bytes) + ", " +
      FormatCount(report.deleted_segments, "segment") + "\n" + would +
      "marked: " + FormatCount(report.marked_sets, "set") + ", " +
      FormatCount(report.marked_files, "file") + " of " +
      FormatBytes(report.marked_bytes) + ", " +
      FormatCount(report.marked_segments, "segment") +
      ", for deletion by a prune after the "
      "grace; " + Took(report.seconds, 0) + "\n";
  std::vector<std::vector<std::string>> rows = {
      {"SET", options.dry_run ? "WOULD BE" : "NOW", "SIZE", "LABEL", "WHY"}};
  for (const ArchivedSet& set : report.sets) {
    rows.push_back({set.name, set.state, FormatBytes(set.bytes),
                    Printable(set.label),
                    set.why + (set.until.empty()
                                   ? ""
                                   : "; not before " + set.until)});
  }
  return text + (report.sets.empty() ? "" : Table(rows));
}

std::string RepairText(const std::string& place, const ArchiveReport& report) {
  std::string text = "read: " + FormatBytes(report.read_bytes) + "; " +
                     FormatCount(report.whole_sets, "set") +
                     (report.whole_sets == 1 ? " is whole\n"
                                             : " are whole\n");
  for (const ArchivedSet& set : report.sets) {
    text += set.repairs.empty()
                ? "still damaged: " + set.name + ": " +
                      Printable(set.problem) + "\n"
                : "repaired: " + set.repairs + " by " + set.name + " (" +
                      Printable(set.problem) +
                      ")\nnext: sstferry archive remove " + ShellWord(place) +
                      " " + set.repairs + "\n";
  }
  return report.uploaded_files == 0
             ? text
             : text + "uploaded " + FormatBytes(report.uploaded_bytes) +
                   " in " + FormatCount(report.uploaded_files, "file") +
                   ", reused " + FormatBytes(report.reused_bytes) +
                   "\n";
}

std::string Text(const ArchiveOptions& options, const ArchiveReport& report) {
  const std::string place = Printable(options.store.where.ToString());
  switch (options.action) {
    case ArchiveAction::kInit:
      return InitText(place, report);
    case ArchiveAction::kPush:
      return PushText(report);
    case ArchiveAction::kList:
      return ListText(place, report);
    case ArchiveAction::kCheck:
      return CheckText(place, report);
    case ArchiveAction::kPrune:
      return PruneText(options, report);
    case ArchiveAction::kRepair:
      return RepairText(place, report);
    case ArchiveAction::kRemove:
      return "removed: " + Printable(options.set) +
             "; later prunes delete what no other set names\n";
  }
  return "";
}

}  // namespace

std::string ArchiveToJson(const ArchiveOptions& options,
                          const ArchiveReport& report) {
  const std::string place = options.store.where.ToString();
  ordered_json json = ResultJson("archive", report.status, place);
  json["action"] = ArchiveActionName(options.action);
  json["archive"] = place;
  json["seconds"] = report.seconds;
  json["notes"] = report.notes;
  json["warnings"] = report.warnings;
  const ArchiveAction action = options.action;
  if (action == ArchiveAction::kPush) {
    json["source"] = options.source.ToString();
    json["uploaded_files"] = report.uploaded_files;
    json["uploaded_bytes"] = report.uploaded_bytes;
    json["reused_files"] = report.reused_files;
    json["reused_bytes"] = report.reused_bytes;
  } else if (action == ArchiveAction::kPrune) {
    json["dry_run"] = options.dry_run;
    json["kept_sets"] = report.kept_sets;
    json["damaged_sets"] = report.damaged_sets;
    json["dropped_sets"] = report.dropped_sets;
    json["deleted_files"] = report.deleted_files;
    json["deleted_bytes"] = report.deleted_bytes;
    json["marked_sets"] = report.marked_sets;
    json["marked_files"] = report.marked_files;
    json["marked_bytes"] = report.marked_bytes;
    json["waiting_marks"] = report.waiting_marks;
    json["held_marks"] = report.held_marks;
    json["aborted_uploads"] = report.aborted_uploads;
    json["deleted_segments"] = report.deleted_segments;
    json["marked_segments"] = report.marked_segments;
  } else if (action == ArchiveAction::kRepair) {
    json["from"] = nullptr;
    if (!options.source.is_directory() || !options.source.directory.empty()) {
      json["from"] = options.source.ToString();
    }
    json["whole_sets"] = report.whole_sets;
    json["read_bytes"] = report.read_bytes;
    json["uploaded_files"] = report.uploaded_files;
    json["uploaded_bytes"] = report.uploaded_bytes;
    json["reused_files"] = report.reused_files;
    json["reused_bytes"] = report.reused_bytes;
  } else if (action == ArchiveAction::kRemove) {
    json["removed"] = options.set;
  } else {
    json["archive_id"] = report.archive_id;
    json["grace_seconds"] = report.grace_seconds;
    json["has_put_if_absent"] = report.has_if_absent;
    json["refuses_old_signatures"] = report.refuses_old_signatures;
  }
  if (action == ArchiveAction::kCheck) {
    json["objects"] = report.objects;
    json["bytes"] = report.bytes;
    json["orphans"] = report.orphans;
    json["orphan_bytes"] = report.orphan_bytes;
    json["foreign_objects"] = report.foreign;
    json["read_files"] = report.read_files;
    json["read_bytes"] = report.read_bytes;
    json["newest_age_seconds"] = nullptr;
    if (report.newest_age_seconds.has_value()) {
      json["newest_age_seconds"] = *report.newest_age_seconds;
    }
    json["segments"] = report.segments;
    json["segment_bytes"] = report.segment_bytes;
    json["orphan_segments"] = report.orphan_segments;
    json["log_age_seconds"] = nullptr;
    if (report.log_age_seconds.has_value()) {
      json["log_age_seconds"] = *report.log_age_seconds;
    }
    json["problems"] = report.problems;
    json["read_part"] = report.read_part;
    json["read_parts"] = report.read_parts;
    json["drill"] = Json(report.drill);
    json["log_drill"] = Json(report.log_drill);
    json["continued_drill"] = Json(report.continued_drill);
  }
  if (action == ArchiveAction::kList) {
    json["checked_age_seconds"] = nullptr;
    if (report.checked_age_seconds.has_value()) {
      json["checked_age_seconds"] = *report.checked_age_seconds;
    }
  }
  if (action == ArchiveAction::kList || action == ArchiveAction::kCheck) {
    json["windows"] = ordered_json::array();
    for (const ArchiveWindow& window : report.windows) {
      json["windows"].push_back(
          {{"begin", window.begin}, {"end", window.end}, {"why", window.why}});
    }
  }
  json["sets"] = ordered_json::array();
  for (const ArchivedSet& set : report.sets) {
    json["sets"].push_back(Json(set));
  }
  return DumpJson(json);
}

int RunArchive(const std::vector<std::string>& arguments) {
  ArchiveArguments parsed;
  const Status usage = ParseArchive(arguments, &parsed);
  if (!usage.ok()) {
    return ReportUsage("archive", usage);
  }
  Console console(parsed.common);
  parsed.options.log = [&console](LogLevel level, const std::string& text) {
    console.Log(level, text);
  };
  if (parsed.all) {
    return PushAll(parsed, &console);
  }
  const std::unique_ptr<ArchiveJob> job = MakeArchiveJob(parsed.options);
  ArchiveReport report;
  Status status;
  {
    const StopWatcher watcher([&job] { job->Cancel(); });
    const ArchiveAction action = parsed.options.action;
    std::optional<ProgressReporter> progress;
    if (action == ArchiveAction::kPush || action == ArchiveAction::kCheck ||
        action == ArchiveAction::kPrune || action == ArchiveAction::kRepair) {
      progress.emplace(parsed.common, &console,
                       [&job] { return job->progress(); });
    }
    status = job->Run(&report);
  }
  if (!parsed.metrics.file.empty()) {
    const std::string& file = parsed.metrics.file;
    const Descriptor lock = LockMetrics(file);
    const Status written = WriteMetricsFile(
        file,
        ArchiveMetricsText(parsed.options, report, ReadMetricsFile(file)));
    if (!written.ok()) {
      console.Log(LogLevel::kError, MessageOf(written));
    }
  }
  for (const std::string& warning : report.warnings) {
    console.Log(LogLevel::kWarning, warning);
  }
  for (const std::string& note : report.notes) {
    console.Log(LogLevel::kInfo, "note: " + note);
  }
  const bool is_found = status.ok() || report.drill.has_value() ||
                        report.is_checked || !report.sets.empty();
  const auto json = [&] { return ArchiveToJson(parsed.options, report); };
  const std::string text = parsed.common.json ? json()
                           : is_found ? Text(parsed.options, report)
                                      : "";
  return FinishCommand("archive", status, "", text, &console, json);
}

}  // namespace sstferry
