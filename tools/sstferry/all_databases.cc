#include "tools/sstferry/all_databases.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "format/printable.h"
#include "format/quantity.h"
#include "sstferry/descriptor.h"
#include "tools/sstferry/archive_metrics.h"
#include "tools/sstferry/metric_set.h"
#include "tools/sstferry/metrics_file.h"
#include "tools/sstferry/old_databases.h"
#include "tools/sstferry/operation_runner.h"
#include "tools/sstferry/progress.h"
#include "tools/sstferry/result_json.h"
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

// Makes the text of a metrics file with the metrics of all databases. The text
// has the new metrics of the databases of this run, and may keep the old
// metrics of other databases.
//
// Threads: any thread may call Before() and Set().
class MergedMetrics {
 public:
  // `before` is the old text of the file. In the file, the value of `label` is
  // `top` followed by the name of a database, such as "/data/orders".
  MergedMetrics(const std::string& before, const std::string& label,
                const std::string& top)
      : label_(label), top_(Printable(top)) {
    for (const auto& [value, series] : SeriesBy(label, before)) {
      if (value.starts_with(top_)) {
        before_[value.substr(top_.size())] = series;
      }
    }
  }

  // Returns the metrics of a database in the old file.
  std::string Before(const std::string& name) const {
    const auto found = before_.find(name);
    return found == before_.end() ? "" : found->second;
  }
  void Set(const std::string& name, const std::string& text) {
    const std::lock_guard<std::mutex> lock(mu_);
    texts_[name] = text;
  }
  // Copies the metrics of a database from the old file.
  void Keep(const std::string& name) {
    const MetricLabels labels = {{label_, top_ + name}};
    MetricSet series(labels);
    series.Restore(Before(name), label_, top_ + name, /*all=*/true);
    Set(name, series.Text());
  }

  // The functions below need no lock: one thread calls them when all operations
  // have ended.
  bool Has(const std::string& name) const { return texts_.contains(name); }
  // Returns the databases that are in the old file but not in the new text.
  std::vector<std::string> Others() const {
    std::vector<std::string> names;
    for (const auto& [name, series] : before_) {
      if (!Has(name)) {
        names.push_back(name);
      }
    }
    return names;
  }

  // Returns the new text of the file. For each metric it has the lines HELP and
  // TYPE once, followed by the series of all databases.
  std::string Text() const {
    std::vector<std::string> order;
    std::map<std::string, std::pair<std::string, std::string>> metrics;
    for (const auto& [unused, text] : texts_) {
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
  const std::string label_;
  const std::string top_;
  // The metrics by the name of the database: the old ones and the new ones.
  std::map<std::string, std::string> before_;
  std::mutex mu_;
  std::map<std::string, std::string> texts_;  // Set() locks mu_
};

std::string VanishedLine(const VanishedDatabase& gone) {
  const std::string runs = FormatCount(gone.runs, "run");
  return "missing at the source: " + Printable(gone.name) + ", for " + runs +
         (!gone.moved_to.empty() ? "; moved to " + Printable(gone.moved_to)
          : !gone.problem.empty() ? "; not moved: " + Printable(gone.problem)
          : gone.would_move ? "; the run would move its replica"
                                  : "; its replica stays") +
         "\n";
}

// A command that runs on all databases, and the functions that format its
// result.
struct AllCommand {
  std::string name;    // "pull", "verify", "archive", ...
  std::string word;    // first word of the result: "pull", "push", ...
  std::string target;  // directory or address to pull into or compare with
  FleetOptions options;
  // The headings of the table after NAME and RESULT.
  std::vector<std::string> columns;
  // Returns the table's cells for a database whose operation has ended.
  std::function<std::vector<std::string>(const FleetMember&)> cells;
  // Return the JSON object of the complete run and the object of one database.
  std::function<ordered_json(const Summary&)> json;
  std::function<ordered_json(const FleetMember&)> member_json;
  std::function<void(const FleetReport&)> write_metrics;  // may be null
  std::function<void(Operation*)> reload;  // may be null
};

ordered_json SummaryJson(const Summary& summary, const std::string& command) {
  return ordered_json::parse(SummaryToJson(summary, command), nullptr, false);
}

std::string TextOf(const AllCommand& all, const Summary& summary,
                   const FleetReport& report) {
  size_t present = 0;
  size_t failed = 0;
  size_t gone = 0;
  std::vector<std::vector<std::string>> rows = {{"NAME", "RESULT"}};
  rows[0].insert(rows[0].end(), all.columns.begin(), all.columns.end());
  std::string problems;
  for (const FleetMember& member : report.members) {
    const Summary& one = member.summary;
    present += member.is_present ? 1 : 0;
    gone += member.is_gone ? 1 : 0;
    failed += one.status.ok() || member.is_gone ? 0 : 1;
    std::vector<std::string>& row =
        rows.emplace_back(std::vector<std::string>{Printable(member.name),
                                                   ResultOf(member)});
    const std::vector<std::string> cells = all.cells(member);
    row.insert(row.end(), cells.begin(), cells.end());
    if (!one.status.ok() && !member.is_gone) {
      problems += Printable(member.name) + ": " + MessageOf(one.status) + "\n";
    }
  }
  const size_t done = report.members.size() - present - failed - gone;
  std::string text =
      all.word + ": " + std::to_string(done) + " of " +
      FormatCount(report.members.size(), "database") + " of " +
      summary.source + (all.target.empty() ? "" : " -> " + all.target) +
      (present > 0 ? ", " + std::to_string(present) +
                         " were there already (sstferry refresh --all makes "
                         "them current)"
                   : "") +
      (gone > 0 ? ", " + std::to_string(gone) + " vanished meanwhile" : "") +
      (failed > 0 ? ", " + std::to_string(failed) + " failed" : "") + "\n";
  text += FormatBytes(static_cast<double>(summary.wire_bytes)) + " sent in " +
          AllSeconds(summary.seconds);
  if (report.spread_micros.has_value()) {
    const auto together = static_cast<size_t>(std::count_if(
        report.members.begin(), report.members.end(),
        [](const FleetMember& one) { return one.behind_micros.has_value(); }));
    text += "; " + FormatCount(together, "database") +
            " as of one moment (within " + MillisText(*report.spread_micros) +
            ")";
  }
  text += "\n" + Table(rows) + problems;
  for (const VanishedDatabase& vanished : report.vanished) {
    text += VanishedLine(vanished);
  }
  return text;
}

std::string JsonOf(const AllCommand& all, const Summary& summary,
                   const FleetReport& report) {
  ordered_json json = all.json(summary);
  json["spread_ms"] = nullptr;
  if (report.spread_micros.has_value()) {
    json["spread_ms"] = Millis(*report.spread_micros);
  }
  json["databases"] = ordered_json::array();
  for (const FleetMember& member : report.members) {
    ordered_json named;
    named["name"] = member.name;
    named["target"] = nullptr;
    if (!member.target_dir.empty()) {
      named["target"] = member.target_dir;
    }
    named["present"] = member.is_present;
    named["gone"] = member.is_gone;
    named["behind_ms"] = nullptr;
    if (member.behind_micros.has_value()) {
      named["behind_ms"] = Millis(*member.behind_micros);
    }
    named["summary"] = all.member_json(member);
    json["databases"].push_back(std::move(named));
  }
  json["vanished"] = ordered_json::array();
  for (const VanishedDatabase& gone : report.vanished) {
    ordered_json one = {{"name", gone.name},
                        {"runs", gone.runs},
                        {"would_move", gone.would_move},
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
  return DumpJson(json);
}

// Runs the command to its end and returns the exit code.
int RunAll(const AllCommand& all, const CommonArguments& common,
           Console* console, FleetReport* report) {
  const std::unique_ptr<Fleet> fleet = MakeFleet(all.options);
  Summary summary;
  Status status;
  {
    const StopWatcher watcher(
        [&fleet] { fleet->Cancel(); },
        all.reload ? std::function<void()>([&] { all.reload(fleet.get()); })
                   : nullptr);
    ProgressReporter reporter(common, console,
                              [&fleet] { return fleet->progress(); });
    status = fleet->Run(&summary);
  }
  *report = fleet->report();
  if (all.write_metrics) {
    all.write_metrics(*report);
  }
  const auto json = [&] { return JsonOf(all, summary, *report); };
  return FinishCommand(
      all.name, status, summary.error_where,
      common.json ? json()
      : report->members.empty() && report->vanished.empty()
          ? ""
          : TextOf(all, summary, *report),
      console, json);
}

void WriteMerged(const std::string& file, const MergedMetrics& metrics,
                 const MetricsWriter& write, Console* console) {
  const std::string text = metrics.Text();
  const Status written = text.empty() ? Status::OK() : write(file, text);
  if (!written.ok()) {
    console->Log(LogLevel::kError, MessageOf(written));
  }
}

std::vector<std::string> PullCells(const FleetMember& member) {
  const Summary& one = member.summary;
  const bool pulled = one.status.ok() && !member.is_present;
  return {pulled && !one.method.empty() ? one.method : "-",
          FormatBytes(static_cast<double>(one.wire_bytes)),
          pulled ? std::to_string(one.snapshot_sequence) : "-",
          AllSeconds(one.seconds)};
}

// Returns the number of bytes that the planned pull would send.
uint64_t PlannedBytes(const Summary& plan) {
  for (const MethodSummary& method : plan.methods) {
    if (method.method == plan.method) {
      return method.bytes;
    }
  }
  uint64_t bytes = 0;
  for (const PlanItemSummary& item : plan.items) {
    bytes += item.action == "skip" ? 0 : item.bytes;
  }
  return bytes;
}

std::vector<std::string> PlanCells(const FleetMember& member) {
  const Summary& one = member.summary;
  return {one.method.empty() ? "-" : one.method,
          FormatBytes(PlannedBytes(one)), FormatBytes(one.needed_bytes)};
}

std::vector<std::string> VerifyCells(const FleetMember& member) {
  const Summary& one = member.summary;
  return {one.compared.empty()     ? "-"
          : one.compared == "files" ? FormatBytes(one.bytes_compared) + " in " +
                                          FormatCount(one.files_compared, "file")
                                    : FormatCount(one.entries_left, "entry",
                                                  "entries"),
          std::to_string(one.differences), AllSeconds(one.seconds)};
}

// Creates the directory TOP/NAME and its missing parents below TOP. Does not
// follow symbolic links below TOP. Gives new directories the permissions of
// TOP, because the archive contains all of the database's data.
Status MakeBelow(const std::string& top, const std::string& name) {
  std::error_code error;
  const std::string real = std::filesystem::canonical(top, error).string();
  errno = error.value();
  Descriptor directory = error ? Descriptor() : OpenDirectory(real);
  struct stat info {};
  if (directory.is_open() && fstat(directory.get(), &info) != 0) {
    directory = Descriptor();
  }
  std::istringstream parts(name);
  for (std::string part;
       directory.is_open() && std::getline(parts, part, '/');) {
    if (mkdirat(directory.get(), part.c_str(), info.st_mode & 0777) != 0 &&
        errno != EEXIST) {
      directory = Descriptor();
      break;
    }
    directory = OpenDirectoryIn(directory.get(), part);
  }
  return directory.is_open()
             ? Status::OK()
             : MakeStatus(EndState::kRefused, "cannot make " + top + "/" +
                                                  name + ": " +
                                                  std::strerror(errno));
}

// A pull that could not begin. Run() only returns the error.
class FailedPull : public Operation {
 public:
  FailedPull(PullMode mode, const Status& status)
      : mode_(mode), status_(status) {}

  Status Run(Summary* summary) override {
    summary->mode = PullModeName(mode_);
    summary->status = status_;
    return status_;
  }
  void Cancel() override {}
  void SetMaxRate(uint64_t /*bytes_per_sec*/) override {}
  Progress progress() const override { return {}; }

 private:
  const PullMode mode_;
  const Status status_;
};

// Pushes one database into its archive, which is a directory below `top` or a
// prefix in a bucket. Makes a missing directory.
class PushOperation : public Operation {
 public:
  // `name` is the name of the database. Run() stores the result in *report.
  PushOperation(const ArchiveOptions& options, const std::string& top,
                const std::string& name, ArchiveReport* report)
      : top_(top),
        name_(name),
        job_(MakeArchiveJob(options)),
        report_(report) {}

  Status Run(Summary* summary) override {
    report_->status = top_.empty() ? Status::OK() : MakeBelow(top_, name_);
    if (report_->status.ok()) {
      job_->Run(report_).PermitUncheckedError();  // also in report_->status
    }
    summary->status = report_->status;
    summary->seconds = report_->seconds;
    summary->wire_bytes = report_->uploaded_bytes;
    summary->notes = report_->notes;
    return summary->status;
  }
  void Cancel() override { job_->Cancel(); }
  void SetMaxRate(uint64_t /*bytes_per_sec*/) override {}
  Progress progress() const override { return job_->progress(); }

 private:
  const std::string top_;  // parent of the archives; empty for a bucket
  const std::string name_;
  const std::unique_ptr<ArchiveJob> job_;
  ArchiveReport* const report_;
};

// Logs the notes in a report. For commands that do not log notes while they
// run.
void LogNotes(const FleetReport& report, Console* console) {
  for (const FleetMember& member : report.members) {
    for (const std::string& note : member.summary.notes) {
      console->Log(LogLevel::kInfo, member.name + ": note: " + note);
    }
  }
}

// The options and results of the pushes of all databases.
struct Pushes {
  struct Push {
    ArchiveOptions options;
    ArchiveReport report;
  };
  std::mutex mu;
  std::map<std::string, Push> of;  // by database name; guarded by mu
};

std::vector<std::string> PushCells(const ArchiveReport& report) {
  return {report.sets.empty() ? "-" : report.sets.front().name,
          FormatBytes(report.uploaded_bytes), FormatBytes(report.reused_bytes),
          AllSeconds(report.seconds)};
}

}  // namespace

StoreAddress ArchiveOfDatabase(const StoreAddress& all,
                               const std::string& name) {
  StoreAddress one = all;
  std::string& path = one.is_directory() ? one.directory : one.prefix;
  path += (path.empty() || path.ends_with('/') ? "" : "/") + name;
  return one;
}

std::string ArchivesBegin(const StoreAddress& all) {
  std::string begin = ArchiveOfDatabase(all, "x").ToString();
  begin.pop_back();
  return begin;
}

int PullAll(const PullArguments& arguments, Console* console,
            const MetricsWriter& write_metrics,
            const std::function<void(Operation*)>& reload) {
  const std::string& file = arguments.metrics.file;
  const std::string& top = arguments.options.target_dir;
  std::string targets = TargetLabel(top + "/x");
  targets.pop_back();
  MergedMetrics metrics(ReadMetricsFile(file), "target", targets);
  AllCommand all;
  all.name = all.word = PullModeName(arguments.options.mode);
  all.target = top;
  all.options.pull = arguments.options;
  all.options.jobs = arguments.jobs;
  all.options.delete_vanished = arguments.delete_vanished;
  const auto measure = [&](const PullOptions& options,
                           std::unique_ptr<Operation> pull) {
    PullArguments one = arguments;
    one.options = options;
    const std::string name = options.source.name;
    return std::make_unique<MeasuredPull>(
        one, std::move(pull),
        [&metrics, name](const std::string&, const std::string& text) {
          metrics.Set(name, text);
          return Status::OK();
        },
        metrics.Before(name));
  };
  // Counts a failure in the metrics of a database whose pull did not run.
  const auto fail = [&](const std::string& name, const Status& status) {
    PullOptions one = arguments.options;
    one.source = AddressOfDatabase(arguments.options.source, name);
    one.target_dir = top + "/" + name;
    Summary unused;
    measure(one, std::make_unique<FailedPull>(one.mode, status))
        ->Run(&unused)
        .PermitUncheckedError();
  };
  if (!file.empty()) {
    all.options.wrap = measure;
    all.write_metrics = [&](const FleetReport& report) {
      for (const FleetMember& member : report.members) {
        const Status& status = member.summary.status;
        if (!metrics.Has(member.name) && !member.target_dir.empty()) {
          fail(member.name, status.ok() ? report.list_status : status);
        }
      }
      for (const std::string& name : metrics.Others()) {
        std::error_code error;
        if (!report.list_status.ok()) {
          fail(name, report.list_status);
        } else if (std::filesystem::exists(top + "/" + name, error) || error) {
          metrics.Keep(name);  // the source lost the database; a replica stays
        }
      }
      WriteMerged(file, metrics, write_metrics, console);
    };
  }
  all.columns = {"METHOD", "SENT", "SEQUENCE", "TIME"};
  all.cells = PullCells;
  all.json = [&](const Summary& summary) {
    return SummaryJson(summary, all.name);
  };
  all.member_json = [&](const FleetMember& member) {
    ordered_json json = SummaryJson(member.summary, all.name);
    json["target"] = member.target_dir;
    return json;
  };
  all.reload = reload;
  FleetReport report;
  const int code = RunAll(all, arguments.common, console, &report);
  std::vector<std::string> exchanged;
  for (const FleetMember& member : report.members) {
    if (member.summary.exchanged &&
        arguments.options.mode == PullMode::kSwap) {
      exchanged.push_back(member.target_dir);
    }
  }
  RemoveOldDatabases(arguments, exchanged, console);
  return code;
}

int PlanAll(const PullArguments& arguments, Console* console) {
  AllCommand all;
  all.name = "plan";
  all.word = std::string("plan ") + PullModeName(arguments.options.mode);
  all.target = arguments.options.target_dir;
  all.options.pull = arguments.options;
  all.options.pull.log = console->log_function();
  all.options.pull.timeouts.retry = std::chrono::milliseconds(0);
  all.options.jobs = arguments.jobs;
  all.options.delete_vanished = arguments.delete_vanished;
  all.options.has_own_operations = true;
  all.options.wrap = [](const PullOptions& options,
                        std::unique_ptr<Operation> /*pull*/) {
    PullOptions plan = options;
    std::error_code error;
    const std::filesystem::path parent =
        std::filesystem::path(plan.target_dir).parent_path();
    if (!plan.target_dir.empty() && !std::filesystem::exists(parent, error)) {
      plan.target_dir.clear();  // has no parent yet; a pull would create it
    }
    return MakePlan(plan);
  };
  all.columns = {"METHOD", "TO SEND", "NEEDED"};
  all.cells = PlanCells;
  all.json = [](const Summary& summary) {
    return SummaryJson(summary, "plan");
  };
  all.member_json = [](const FleetMember& member) {
    return SummaryJson(member.summary, "plan");
  };
  FleetReport report;
  return RunAll(all, arguments.common, console, &report);
}

int VerifyAll(const VerifyArguments& arguments, Console* console) {
  const VerifyOptions& options = arguments.options;
  AllCommand all;
  all.name = all.word = "verify";
  all.target = options.right.ToString();
  all.options.pull.source = options.left;
  all.options.pull.lanes = options.lanes;
  all.options.pull.timeouts = options.timeouts;
  all.options.pull.timeouts.retry = std::chrono::milliseconds(0);
  all.options.pull.tls = options.tls;
  all.options.pull.ssh = options.ssh;
  all.options.pull.snapshot_dir = options.snapshot_dir;
  all.options.pull.log = console->log_function();
  all.options.jobs = arguments.jobs;
  all.options.has_own_operations = true;
  if (options.right.is_directory()) {
    all.options.replicas_dir = options.right.directory;
  }
  all.options.wrap = [&](const PullOptions& one,
                         std::unique_ptr<Operation> /*pull*/) {
    VerifyOptions verify = options;
    verify.left = one.source;
    verify.right = AddressOfDatabase(options.right, one.source.name);
    verify.log = one.log;
    return MakeVerify(verify);
  };
  all.columns = {"COMPARED", "DIFFERENCES", "TIME"};
  all.cells = VerifyCells;
  all.json = [&](const Summary& summary) {
    Summary both = summary;
    both.mode.clear();
    both.left.address = options.left.ToString();
    both.right.address = options.right.ToString();
    return SummaryJson(both, "verify");
  };
  all.member_json = [](const FleetMember& member) {
    return SummaryJson(member.summary, "verify");
  };
  FleetReport report;
  const int code = RunAll(all, arguments.common, console, &report);
  LogNotes(report, console);
  return code;
}

int PushAll(const ArchiveArguments& arguments, Console* console) {
  const ArchiveOptions& options = arguments.options;
  const StoreAddress& where = options.store.where;
  const std::string& file = arguments.metrics.file;
  Pushes pushes;
  AllCommand all;
  all.name = "archive";
  all.word = "push";
  all.target = where.ToString();
  all.options.pull.source = options.source;
  all.options.pull.timeouts = options.timeouts;
  all.options.pull.deadline = options.deadline;
  all.options.pull.tls = options.tls;
  all.options.pull.ssh = options.ssh;
  all.options.pull.snapshot_dir = options.snapshot_dir;
  all.options.pull.log = options.log;
  all.options.jobs = arguments.jobs;
  all.options.has_own_operations = true;
  all.options.archives = options.store;
  all.options.wrap = [&](const PullOptions& one,
                         std::unique_ptr<Operation> /*pull*/) {
    ArchiveOptions push = options;
    push.source = one.source;
    push.store.where = ArchiveOfDatabase(where, one.source.name);
    push.init_if_absent = true;
    push.deadline = one.deadline;
    push.log = one.log;
    const std::lock_guard<std::mutex> lock(pushes.mu);
    Pushes::Push& made = pushes.of[one.source.name];
    made.options = push;
    return std::make_unique<PushOperation>(push, where.directory,
                                           one.source.name, &made.report);
  };
  if (!file.empty()) {
    all.write_metrics = [&](const FleetReport& report) {
      const Descriptor lock = LockMetrics(file);
      MergedMetrics metrics(ReadMetricsFile(file), "archive",
                            ArchivesBegin(where));
      for (const auto& [name, push] : pushes.of) {
        metrics.Set(name, ArchiveMetricsText(push.options, push.report,
                                             metrics.Before(name)));
      }
      for (const std::string& name : metrics.Others()) {
        const bool is_listed = std::any_of(
            report.members.begin(), report.members.end(),
            [&name](const FleetMember& one) { return one.name == name; });
        if (is_listed || !report.list_status.ok()) {
          metrics.Keep(name);  // not pushed, but the source may still have it
        }
      }
      WriteMerged(file, metrics, WriteMetricsFile, console);
    };
  }
  all.columns = {"SET", "UPLOADED", "REUSED", "TIME"};
  all.cells = [&](const FleetMember& member) {
    return PushCells(pushes.of[member.name].report);
  };
  all.json = [&](const Summary& summary) {
    ordered_json json = ResultJson("archive", summary.status, all.target);
    json["action"] = ArchiveActionName(ArchiveAction::kPush);
    json["archive"] = all.target;
    json["source"] = summary.source;
    json["seconds"] = summary.seconds;
    json["uploaded_bytes"] = summary.wire_bytes;
    return json;
  };
  all.member_json = [&](const FleetMember& member) {
    Pushes::Push& push = pushes.of[member.name];
    push.options.action = ArchiveAction::kPush;  // not yet set if none ran
    push.report.status = member.summary.status;
    return ordered_json::parse(ArchiveToJson(push.options, push.report),
                               nullptr, false);
  };
  FleetReport report;
  const int code = RunAll(all, arguments.common, console, &report);
  for (const auto& [name, push] : pushes.of) {
    for (const std::string& warning : push.report.warnings) {
      console->Log(LogLevel::kWarning, name + ": " + warning);
    }
  }
  LogNotes(report, console);
  return code;
}

}  // namespace sstferry
