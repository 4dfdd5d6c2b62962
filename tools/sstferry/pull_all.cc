#include "tools/sstferry/pull_all.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "format/printable.h"
#include "format/quantity.h"
#include "tools/sstferry/metrics_file.h"
#include "tools/sstferry/old_databases.h"
#include "tools/sstferry/progress.h"
#include "tools/sstferry/signals.h"
#include "tools/sstferry/table.h"

namespace sstferry {
namespace {

using nlohmann::ordered_json;
using rocksdb::Status;

// Formats 1234 microseconds as "1.2 ms".
std::string MillisText(uint64_t micros) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f ms",
                static_cast<double>(micros) / 1000);
  return text.data();
}

double Millis(uint64_t micros) { return static_cast<double>(micros) / 1000; }

std::string AllSeconds(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f s", seconds);
  return text.data();
}

std::string ResultOf(const FleetMember& member) {
  return member.is_present          ? "present"
         : member.is_gone             ? "gone"
         : member.summary.status.ok() ? "ok"
                                      : EndStateName(EndStateOf(
                                            member.summary.status));
}

// The metrics of all pulls of a mirror, in one file.
class FleetMetrics {
 public:
  std::unique_ptr<Operation> Measure(const PullArguments& arguments,
                                     const PullOptions& options,
                                     std::unique_ptr<Operation> pull) {
    if (arguments.metrics.file.empty()) {
      return pull;
    }
    PullArguments one = arguments;
    one.options = options;
    return std::make_unique<MeasuredPull>(
        one, std::move(pull),
        [this](const std::string&, const std::string& text) {
          const std::lock_guard<std::mutex> lock(mu_);
          texts_.push_back(text);
          return Status::OK();
        });
  }

  // Groups the series of one metric after its HELP and TYPE.
  std::string Text() const {
    std::vector<std::string> order;
    std::map<std::string, std::pair<std::string, std::string>> metrics;
    for (const std::string& text : texts_) {
      std::string name;
      size_t begin = 0;
      while (begin < text.size()) {
        const size_t end = std::min(text.find('\n', begin), text.size() - 1);
        const std::string line = text.substr(begin, end - begin + 1);
        begin = end + 1;
        const bool is_comment = line.starts_with("# ");
        const size_t at = is_comment ? line.find(' ', 2) + 1 : 0;
        name = line.substr(at, line.find_first_of(" {", at) - at);
        if (!metrics.contains(name)) {
          order.push_back(name);
        }
        std::pair<std::string, std::string>& metric = metrics[name];
        if (!is_comment) {
          metric.second += line;
        } else if (metric.first.find(line) == std::string::npos) {
          metric.first += line;
        }
      }
    }
    std::string all;
    for (const std::string& name : order) {
      all += metrics[name].first + metrics[name].second;
    }
    return all;
  }

 private:
  std::mutex mu_;
  std::vector<std::string> texts_;  // guarded by mu_ while pulls run
};

std::string VanishedLine(const VanishedDatabase& gone) {
  const std::string runs = FormatCount(gone.runs, "run");
  return "missing at the source: " + Printable(gone.name) + ", for " + runs +
         (!gone.moved_to.empty() ? "; moved to " + Printable(gone.moved_to)
          : !gone.problem.empty() ? "; not moved: " + Printable(gone.problem)
                                  : "; its replica stays") +
         "\n";
}

}  // namespace

std::string FleetText(const Summary& summary, const FleetReport& report) {
  size_t present = 0;
  size_t failed = 0;
  size_t gone = 0;
  std::vector<std::vector<std::string>> rows = {
      {"NAME", "RESULT", "METHOD", "SENT", "SEQUENCE", "TIME"}};
  std::string problems;
  for (const FleetMember& member : report.members) {
    const Summary& one = member.summary;
    present += member.is_present ? 1 : 0;
    gone += member.is_gone ? 1 : 0;
    failed += one.status.ok() || member.is_gone ? 0 : 1;
    const bool pulled = one.status.ok() && !member.is_present;
    rows.push_back(
        {Printable(member.name), ResultOf(member),
         pulled && !one.method.empty() ? one.method : "-",
         FormatBytes(static_cast<double>(one.wire_bytes)),
         pulled ? std::to_string(one.snapshot_sequence) : "-",
         AllSeconds(one.seconds)});
    if (!one.status.ok() && !member.is_gone) {
      problems += Printable(member.name) + ": " + MessageOf(one.status) + "\n";
    }
  }
  const size_t pulled = report.members.size() - present - failed - gone;
  std::string text =
      summary.mode + ": " + std::to_string(pulled) + " of " +
      FormatCount(report.members.size(), "database") + " of " +
      summary.source + " -> " + summary.target +
      (present > 0 ? ", " + std::to_string(present) +
                         " were there already (sstferry refresh --all makes "
                         "them current)"
                   : "") +
      (gone > 0 ? ", " + std::to_string(gone) + " vanished meanwhile" : "") +
      (failed > 0 ? ", " + std::to_string(failed) + " failed" : "") + "\n";
  text += FormatBytes(static_cast<double>(summary.wire_bytes)) +
          " on the wire in " + AllSeconds(summary.seconds);
  if (report.spread_micros.has_value()) {
    const auto together = static_cast<size_t>(std::count_if(
        report.members.begin(), report.members.end(),
        [](const FleetMember& one) { return one.behind_micros.has_value(); }));
    text += "; " + FormatCount(together, "database") + " as of one moment, " +
            MillisText(*report.spread_micros) + " apart at most";
  }
  text += "\n" + (report.members.empty() ? "" : Table(rows)) + problems;
  for (const VanishedDatabase& vanished : report.vanished) {
    text += VanishedLine(vanished);
  }
  return text;
}

std::string FleetToJson(const std::string& command, const Summary& summary,
                        const FleetReport& report) {
  ordered_json json = ordered_json::parse(SummaryToJson(summary, command),
                                          nullptr, false);
  json["spread_ms"] = nullptr;
  if (report.spread_micros.has_value()) {
    json["spread_ms"] = Millis(*report.spread_micros);
  }
  json["databases"] = ordered_json::array();
  for (const FleetMember& member : report.members) {
    ordered_json one = ordered_json::parse(
        SummaryToJson(member.summary, command), nullptr, false);
    ordered_json named;
    named["name"] = member.name;
    named["target"] = member.target_dir;
    named["present"] = member.is_present;
    named["gone"] = member.is_gone;
    named["behind_ms"] = nullptr;
    if (member.behind_micros.has_value()) {
      named["behind_ms"] = Millis(*member.behind_micros);
    }
    one["target"] = member.target_dir;
    named["summary"] = std::move(one);
    json["databases"].push_back(std::move(named));
  }
  json["vanished"] = ordered_json::array();
  for (const VanishedDatabase& gone : report.vanished) {
    ordered_json one = {{"name", gone.name},
                        {"runs", gone.runs},
                        {"moved_to", nullptr},
                        {"problem", nullptr}};
    if (!gone.moved_to.empty()) one["moved_to"] = gone.moved_to;
    if (!gone.problem.empty()) one["problem"] = gone.problem;
    json["vanished"].push_back(std::move(one));
  }
  json["delete_refused"] = nullptr;
  if (!report.delete_refused.empty()) {
    json["delete_refused"] = report.delete_refused;
  }
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) +
         "\n";
}

int RunAll(const PullArguments& arguments, Console* console,
           const MetricsWriter& write_metrics,
           const std::function<void(Operation*)>& reload) {
  const std::string command = PullModeName(arguments.options.mode);
  FleetMetrics metrics;
  FleetOptions options;
  options.pull = arguments.options;
  options.pull.on_transfer = nullptr;
  options.jobs = arguments.jobs;
  options.delete_vanished = arguments.delete_vanished;
  options.wrap = [&](const PullOptions& one,
                     std::unique_ptr<Operation> pull) {
    return metrics.Measure(arguments, one, std::move(pull));
  };
  const std::unique_ptr<Fleet> fleet = MakeFleet(options);
  Summary summary;
  Status status;
  {
    const StopWatcher watcher([&fleet] { fleet->Cancel(); },
                              [&] { reload(fleet.get()); });
    ProgressReporter reporter(arguments.common, console,
                              [&fleet] { return fleet->progress(); });
    status = fleet->Run(&summary);
  }
  if (!arguments.metrics.file.empty()) {
    const Status written =
        write_metrics(arguments.metrics.file, metrics.Text());
    if (!written.ok()) {
      console->Log(LogLevel::kError, MessageOf(written));
    }
  }
  const FleetReport& report = fleet->report();
  const auto json = [&] { return FleetToJson(command, summary, report); };
  const int code = FinishCommand(
      command, status, summary.error_where,
      arguments.common.json ? json()
      : report.members.empty() && report.vanished.empty()
          ? ""
          : FleetText(summary, report),
      console, json);
  std::vector<std::string> exchanged;
  for (const FleetMember& member : report.members) {
    if (member.summary.exchanged) {
      exchanged.push_back(member.target_dir);
    }
  }
  RemoveOldDatabases(arguments, exchanged, console);
  return code;
}

}  // namespace sstferry
