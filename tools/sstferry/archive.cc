// sstferry archive
#include <optional>

#include <nlohmann/json.hpp>

#include "format/printable.h"
#include "format/quantity.h"
#include "tools/sstferry/archive_metrics.h"
#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/console.h"
#include "tools/sstferry/metrics_file.h"
#include "tools/sstferry/operation_runner.h"
#include "tools/sstferry/progress.h"
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
                       {"label", set.label},
                       {"host", set.host},
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
  return json;
}

std::string SetTable(const ArchiveReport& report) {
  std::vector<std::vector<std::string>> rows = {
      {"SET", "STATE", "SIZE", "OWN", "FILES", "SEQUENCE", "LABEL"}};
  std::string problems;
  for (const ArchivedSet& set : report.sets) {
    rows.push_back({set.name, set.state, FormatBytes(set.bytes),
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

std::string PushText(const ArchiveReport& report) {
  const ArchivedSet& set = report.sets.front();
  return "pushed: the set " + set.name + ", " + FormatBytes(set.bytes) +
         " in " + FormatCount(set.files, "file") + "; uploaded " +
         FormatBytes(report.uploaded_bytes) + " in " +
         FormatCount(report.uploaded_files, "file") + ", used " +
         FormatBytes(report.reused_bytes) + " that was there\n";
}

std::string ListText(const std::string& place, const ArchiveReport& report) {
  std::string text = place + " has " +
                     FormatCount(report.sets.size(), "set") + "\n" +
                     SetTable(report);
  for (const ArchiveWindow& window : report.windows) {
    text += "any time: " + window.begin + " to " + window.end +
            (window.why.empty() ? "" : ", then " + Printable(window.why)) +
            "\n";
  }
  return text;
}

std::string DrillText(const std::optional<ArchiveDrill>& drill) {
  return !drill.has_value() || !drill->status.ok()
             ? ""
             : "drill: restored" +
                   std::string(drill->is_opened ? " and opened" : "") +
                   (drill->time.empty() ? ""
                                        : " the time " + drill->time +
                                              " behind") +
                   " the set " + drill->set + ", " +
                   FormatBytes(drill->bytes) + ", in " +
                   FormatClock(drill->seconds) +
                   "; it was compared, and removed\n";
}

ordered_json Json(const std::optional<ArchiveDrill>& drill) {
  if (!drill.has_value()) {
    return nullptr;
  }
  ordered_json json = {{"status", EndStateName(EndStateOf(drill->status))},
                       {"error", nullptr},
                       {"set", drill->set},
                       {"time", nullptr},
                       {"bytes", drill->bytes},
                       {"seconds", drill->seconds},
                       {"opened", drill->is_opened}};
  if (!drill->time.empty()) {
    json["time"] = drill->time;
  }
  if (!drill->status.ok()) {
    json["error"] = MessageOf(drill->status);
  }
  return json;
}

std::string CheckText(const std::string& place, const ArchiveReport& report) {
  std::string text = ListText(place, report);
  text += "objects: " + std::to_string(report.objects) + " of " +
          FormatBytes(report.bytes) + ", of them " +
          std::to_string(report.orphans) + " of " +
          FormatBytes(report.orphan_bytes) + " that no set names\n";
  if (report.read_files > 0) {
    text += "read: " + FormatBytes(report.read_bytes) + " in " +
            FormatCount(report.read_files, "file") + "\n";
  }
  if (report.segments > 0) {
    text += "log: " + FormatCount(report.segments, "segment") + " of " +
            FormatBytes(report.segment_bytes) + ", of them " +
            std::to_string(report.orphan_segments) + " behind no set\n";
  }
  text += DrillText(report.drill) + DrillText(report.log_drill);
  text += "newest whole set: " +
          (report.newest_age_seconds.has_value()
               ? FormatClock(static_cast<double>(*report.newest_age_seconds)) +
                     " old"
               : std::string("none")) +
          "\n";
  for (const std::string& problem : report.problems) {
    text += "problem: " + Printable(problem) + "\n";
  }
  return text;
}

std::string PruneText(const ArchiveReport& report) {
  return "kept: " + FormatCount(report.kept_sets, "set") +
         "\ndeleted: " + FormatCount(report.dropped_sets, "set") + ", " +
         FormatCount(report.deleted_files, "file") + ", " +
         FormatCount(report.deleted_segments, "segment") +
         "\nmarked: " + FormatCount(report.marked_sets, "set") + ", " +
         FormatCount(report.marked_files, "file") + " of " +
         FormatBytes(report.marked_bytes) + ", " +
         FormatCount(report.marked_segments, "segment") +
         ", for a prune after the grace\n";
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
      return PruneText(report);
  }
  return "";
}

std::string ToJson(const ArchiveOptions& options,
                   const ArchiveReport& report) {
  const EndState state = EndStateOf(report.status);
  const std::string place = options.store.where.ToString();
  ordered_json json;
  json["schema"] = 1;
  json["command"] = "archive";
  json["action"] = ArchiveActionName(options.action);
  json["status"] = EndStateName(state);
  json["exit_code"] = ExitCodeOf(state);
  json["error"] = nullptr;
  if (!report.status.ok()) {
    json["error"] = {{"message", MessageOf(report.status)}, {"where", place}};
  }
  json["archive"] = place;
  json["notes"] = report.notes;
  const ArchiveAction action = options.action;
  if (action == ArchiveAction::kPush) {
    json["source"] = options.source.ToString();
    json["uploaded_files"] = report.uploaded_files;
    json["uploaded_bytes"] = report.uploaded_bytes;
    json["reused_files"] = report.reused_files;
    json["reused_bytes"] = report.reused_bytes;
  } else if (action == ArchiveAction::kPrune) {
    json["kept_sets"] = report.kept_sets;
    json["dropped_sets"] = report.dropped_sets;
    json["deleted_files"] = report.deleted_files;
    json["marked_sets"] = report.marked_sets;
    json["marked_files"] = report.marked_files;
    json["marked_bytes"] = report.marked_bytes;
    json["waiting_marks"] = report.waiting_marks;
    json["held_marks"] = report.held_marks;
    json["aborted_uploads"] = report.aborted_uploads;
    json["deleted_segments"] = report.deleted_segments;
    json["marked_segments"] = report.marked_segments;
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
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) +
         "\n";
}

}  // namespace

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
  const std::unique_ptr<ArchiveJob> job = MakeArchiveJob(parsed.options);
  ArchiveReport report;
  Status status;
  {
    const StopWatcher watcher([&job] { job->Cancel(); });
    status = job->Run(&report);
  }
  if (!parsed.metrics.file.empty()) {
    const std::string& file = parsed.metrics.file;
    const Status written = WriteMetricsFile(
        file,
        ArchiveMetricsText(parsed.options, report, ReadMetricsFile(file)));
    if (!written.ok()) {
      console.Log(LogLevel::kError, MessageOf(written));
    }
  }
  for (const std::string& note : report.notes) {
    console.Log(LogLevel::kInfo, "note: " + note);
  }
  const bool is_found = status.ok() || report.drill.has_value() ||
                        (EndStateOf(status) == EndState::kCorrupt &&
                         !report.sets.empty());
  const std::string text = parsed.common.json ? ToJson(parsed.options, report)
                           : is_found ? Text(parsed.options, report)
                                      : "";
  return FinishCommand("archive", status, "", text, &console);
}

}  // namespace sstferry
