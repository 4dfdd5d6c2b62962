// Implements the command sstferry ls.
#include <nlohmann/json.hpp>

#include "format/printable.h"
#include "format/quantity.h"
#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/console.h"
#include "tools/sstferry/operation_runner.h"
#include "tools/sstferry/progress.h"
#include "tools/sstferry/result_json.h"
#include "tools/sstferry/run.h"
#include "tools/sstferry/signals.h"
#include "tools/sstferry/table.h"

namespace sstferry {

using nlohmann::ordered_json;

std::string LsText(const std::string& place, bool is_directory,
                   const StatusReport& report) {
  std::string text = place + (is_directory ? ": " : " serves ") +
                     FormatCount(report.served.size(), "database") + "\n";
  std::vector<std::vector<std::string>> rows = {
      {"NAME", "SIZE", "SEQUENCE", "AGE", "COLUMN FAMILIES", "FILES"}};
  std::string problems;
  for (const ServedState& served : report.served) {
    const std::string name = Printable(served.name);
    if (!served.problem.empty()) {
      rows.push_back({name, "-", "-", "-", "-", "-"});
      problems += name + ": " + Printable(served.problem) + "\n";
      continue;
    }
    rows.push_back({name, FormatBytes(served.bytes),
                    std::to_string(served.sequence),
                    FormatClock(static_cast<double>(served.age_seconds)),
                    std::to_string(served.families),
                    std::to_string(served.files)});
  }
  return text +
         (report.served.empty()
              ? ""
              : Table(rows) + "size and sequence: as of the last flush\n") +
         problems +
         (report.served_all ? ""
                            : "there may be more databases: a directory could "
                              "not be read; the source's log names it\n");
}

std::string LsToJson(const std::string& place, const StatusReport& report) {
  ordered_json json = ResultJson("ls", report.status, place);
  json["place"] = place;
  json["complete"] = report.served_all;
  json["databases"] = ordered_json::array();
  for (const ServedState& served : report.served) {
    ordered_json database = {{"name", served.name},
                             {"bytes", served.bytes},
                             {"snapshot_sequence", served.sequence},
                             {"age_seconds", served.age_seconds},
                             {"column_families", served.families},
                             {"files", served.files},
                             {"problem", nullptr}};
    if (!served.problem.empty()) {
      for (const char* number : {"bytes", "snapshot_sequence", "age_seconds",
                                 "column_families", "files"}) {
        database[number] = nullptr;  // unknown
      }
      database["problem"] = served.problem;
    }
    json["databases"].push_back(database);
  }
  return DumpJson(json);
}

int RunLs(const std::vector<std::string>& arguments) {
  StatusArguments parsed;
  const rocksdb::Status usage = ParseLs(arguments, &parsed);
  if (!usage.ok()) {
    return ReportUsage("ls", usage);
  }
  Console console(parsed.common);
  LogTlsWarnings(parsed.options.tls, &console);
  parsed.options.log = [&console](LogLevel level, const std::string& text) {
    if (level <= LogLevel::kWarning) {
      console.Log(level, text);
    }
  };
  const std::string place = parsed.options.where.ToString();
  const std::unique_ptr<StatusQuery> query = MakeServedQuery(parsed.options);
  StatusReport report;
  rocksdb::Status status;
  {
    const StopWatcher watcher([&query] { query->Cancel(); });
    status = query->Run(&report);
  }
  const bool is_directory = parsed.options.where.is_directory();
  const std::string text =
      parsed.common.json ? LsToJson(place, report)
      : status.ok()      ? LsText(Printable(place), is_directory, report)
                         : "";
  return FinishCommand("ls", status, "", text, &console);
}

}  // namespace sstferry
