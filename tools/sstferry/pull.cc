// sstferry pull, refresh and swap
#include "format/printable.h"
#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/console.h"
#include "tools/sstferry/hook.h"
#include "tools/sstferry/measured_pull.h"
#include "tools/sstferry/metrics_endpoint.h"
#include "tools/sstferry/metrics_file.h"
#include "tools/sstferry/operation_runner.h"
#include "tools/sstferry/progress.h"
#include "tools/sstferry/reload.h"
#include "tools/sstferry/run.h"
#include "tools/sstferry/run_as.h"
#include "tools/sstferry/signals.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <optional>

namespace sstferry {
namespace {

std::string PullSeconds(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f s", seconds);
  return text.data();
}

std::string Rate(uint64_t bytes, double seconds) {
  return seconds > 0
             ? FormatBytes(static_cast<double>(bytes) / seconds) + "/s"
             : "-";
}

std::string PullBytes(uint64_t bytes) {
  return FormatBytes(static_cast<double>(bytes));
}

std::string Levels(const Summary& summary) {
  std::string text;
  for (const auto& [level, files] : summary.levels) {
    if (files > 0) {
      text += (text.empty() ? "L" : ", L") + std::to_string(level) + ": " +
              FormatCount(files, "file");
    }
  }
  return text.empty() ? "no files" : text;
}

// Says what deltas did: ", 39600 entries put and 12 deleted".
std::string SingleEntries(const Summary& summary) {
  return summary.chunks_delta == 0
             ? ""
             : ", " + std::to_string(summary.entries_put) +
                   " entries put and " +
                   std::to_string(summary.entries_deleted) + " deleted";
}

// "; placed 1 chunk in L0, 20 in L5; 3.0 MB left to compact": where a refresh
// in place put its chunks, and what RocksDB owes for it.
std::string Placement(const Summary& summary) {
  std::string text;
  for (const auto& [level, chunks] : summary.ingested_levels) {
    text += (text.empty() ? "; placed " + FormatCount(chunks, "chunk")
                          : ", " + std::to_string(chunks)) +
            " in L" + std::to_string(level);
  }
  return text.empty() ? text
                      : text + "; " + PullBytes(summary.compaction_debt_bytes) +
                            " left to compact";
}

// Says what a refresh in place read and wrote.
std::string ReadAndWritten(const Summary& summary) {
  return "; " + PullBytes(summary.bytes_read) + " read, " +
         PullBytes(summary.bytes_written) + " written";
}

// Describes the finished TARGET_DIR in one line.
std::string TargetLine(const Summary& summary) {
  if (summary.mode == PullModeName(PullMode::kPull)) {
    return "target: " + Levels(summary) + ", " +
           FormatCount(summary.ingest_calls, "ingest call") + "\n";
  }
  const std::string text = "refreshed: from sequence " +
                           std::to_string(summary.sequence_old) + " to " +
                           std::to_string(summary.sequence_new);
  if (summary.method == "clone" && !summary.exchanged) {
    return text + ", nothing changed at the source: not swapped\n";
  }
  if (summary.mode == PullModeName(PullMode::kSwap)) {
    return text + ", out of service for " +
           PullSeconds(summary.outage_seconds) + "; " + Levels(summary) + "\n";
  }
  return text + "; parts: " + std::to_string(summary.parts_unchanged) +
         " unchanged, " + std::to_string(summary.parts_compared) +
         " compared, " + std::to_string(summary.parts_sent) + " sent" +
         SingleEntries(summary) + Placement(summary) +
         ReadAndWritten(summary) + "\n";
}

// Says what moved, in one line.
std::string MovedLine(const Summary& summary) {
  const std::string wire =
      ", " + PullBytes(summary.wire_bytes) + " on the wire\n";
  if (summary.method == "clone") {
    const std::string unchecked =
        summary.chunks_unchecked == 0
            ? ""
            : ", " + std::to_string(summary.chunks_unchecked) +
                  " of them without checksums";
    const std::string reused =
        summary.files_reused == 0
            ? ""
            : ", " + FormatCount(summary.files_reused, "file") + " with " +
                  PullBytes(summary.bytes_reused) + " reused";
    return "cloned: " + FormatCount(summary.files_cloned, "file") +
           " as they were" + unchecked + reused + ", " +
           PullBytes(summary.sst_bytes) + " in " +
           FormatCount(summary.chunks, "unit") + wire;
  }
  return "moved: " + FormatCount(summary.entries, "entry", "entries") + ", " +
         PullBytes(summary.key_value_bytes) + " of keys and values as " +
         PullBytes(summary.sst_bytes) + " of SST in " +
         FormatCount(summary.chunks, "chunk") + wire;
}

// Counts resumed chunks in one line; empty if there are none.
std::string ResumedLine(const Summary& summary) {
  return summary.chunks_resumed == 0
             ? ""
             : "resumed: " + FormatCount(summary.chunks_resumed, "chunk") +
                   " received by earlier runs, " +
                   PullBytes(summary.sst_bytes_resumed) + "\n";
}

}  // namespace

std::string OpensLine(const Summary& summary) {
  return summary.opens_since.empty()
             ? ""
             : "opens with RocksDB " + Printable(summary.opens_since) +
                   " or later (" + Printable(summary.opens_because) + ")\n";
}

std::string MethodLine(const Summary& summary) {
  return summary.method_reason.empty()
             ? ""
             : "method: " + summary.method + " (" +
                   Printable(summary.method_reason) + ")\n";
}

std::string PullReport(const Summary& summary) {
  std::string text =
      "pulled: " + summary.source +
      (summary.source_database_id.empty()
           ? std::string()
           : " (database " + summary.source_database_id + ")") +
      " -> " + summary.target + ", " +
      FormatCount(summary.column_families.size(), "column family",
                  "column families") +
      " at sequence " + std::to_string(summary.snapshot_sequence) +
      (summary.snapshot_taken_seconds == 0
           ? std::string()
           : ", taken at " + Rfc3339(summary.snapshot_taken_seconds)) +
      "\n";
  text += MovedLine(summary) + ResumedLine(summary);
  if (summary.mode != PullModeName(PullMode::kRefresh)) {
    text += MethodLine(summary);  // a refresh in place has but one
  }
  text += "time: " + PullSeconds(summary.seconds) + ", " +
          Rate(summary.sst_bytes - summary.sst_bytes_resumed,
               TransferSeconds(summary)) + ", " +
          FormatCount(summary.lanes, "lane") + ", peak memory " +
          PullBytes(summary.peak_rss_bytes) + "\n";
  text += TargetLine(summary) + OpensLine(summary);
  text += summary.verified
              ? "verified: equal\n"
              : "verified: not compared (--verify does, or sstferry "
                "verify SOURCE TARGET_DIR)\n";
  return text;
}

namespace {

// Even where the deadline has passed, the application is given this long to
// start.
constexpr std::chrono::seconds kLeastAfterSwap{60};

void SetHooks(PullArguments* pull) {
  using std::chrono::steady_clock;
  std::optional<steady_clock::time_point> until;
  if (pull->options.deadline.count() > 0) {
    until = steady_clock::now() + pull->options.deadline;
  }
  if (!pull->before_swap.empty()) {
    pull->options.before_swap =
        MakeCommandHook("--before-swap", pull->before_swap, until);
  }
  if (!pull->after_swap.empty()) {
    pull->options.after_swap = [until, command = pull->after_swap](
                                   const SwapEvent& event) {
      std::optional<steady_clock::time_point> limit = until;
      if (limit) {
        limit = std::max(*limit, steady_clock::now() + kLeastAfterSwap);
      }
      return MakeCommandHook("--after-swap", command, limit)(event);
    };
  }
}

// A pull of a TARGET_DIR in which nothing runs any more for an earlier one.
class PullWithoutLeftCommand : public Operation {
 public:
  explicit PullWithoutLeftCommand(const PullOptions& options)
      : target_(options.target_dir),
        log_(options.log),
        pull_(MakePull(options)) {}

  [[nodiscard]] rocksdb::Status Run(Summary* summary) override {
    summary->status = EndLeftCommand(target_, log_);
    return summary->status.ok() ? pull_->Run(summary) : summary->status;
  }
  void Cancel() override { pull_->Cancel(); }
  void SetMaxRate(uint64_t bytes_per_sec) override {
    pull_->SetMaxRate(bytes_per_sec);
  }
  Progress progress() const override { return pull_->progress(); }

 private:
  const std::string target_;
  const LogFunction log_;
  const std::unique_ptr<Operation> pull_;
};

// As it was typed, but for the quotes.
std::string CommandLine(const std::string& command,
                        const std::vector<std::string>& arguments) {
  std::string line = ShellWord(program_invocation_name) + " " + command;
  for (const std::string& argument : arguments) {
    line += " " + ShellWord(argument);
  }
  return line;
}

void Reload(PullMode mode, const std::vector<std::string>& words,
            Operation* operation, Console* console) {
  PullArguments again;
  const rocksdb::Status status = ParsePull(mode, words, &again);
  ApplyReload(status, again.common, again.options.max_rate_bytes_per_sec,
              [operation](uint64_t rate) { operation->SetMaxRate(rate); },
              console);
}

// A replica counts for more than its metrics: without them the pull still runs.
std::unique_ptr<MetricsEndpoint> ShowMetrics(const PullArguments& arguments,
                                             const MeasuredPull* pull,
                                             Console* console) {
  std::unique_ptr<MetricsEndpoint> endpoint;
  if (arguments.metrics.listen) {
    const rocksdb::Status status = MetricsEndpoint::Start(
        arguments.metrics, arguments.options.tls,
        [pull] { return pull->Text(); }, &endpoint);
    console->Log(status.ok() ? LogLevel::kInfo : LogLevel::kError,
                 status.ok() ? "metrics at " + endpoint->url()
                             : MessageOf(status));
  }
  return endpoint;
}

}  // namespace

namespace {

// Pulls in this process. `root`: does what only root may; null: this process
// may. `arguments` are read again on SIGHUP.
int PullHere(const std::vector<std::string>& arguments, PullArguments pull,
             RootSide* root) {
  Console console(pull.common);
  pull.options.log = console.log_function();
  pull.options.on_transfer = [&console](const std::string& id) {
    console.set_transfer(id);
  };
  MetricsWriter write_metrics = WriteMetricsFile;
  std::unique_ptr<Operation> started;
  if (root != nullptr) {
    if (!pull.before_swap.empty()) {
      pull.options.before_swap = [root](const SwapEvent& event) {
        return root->RunHook(/*before=*/true, event);
      };
    }
    if (!pull.after_swap.empty()) {
      pull.options.after_swap = [root](const SwapEvent& event) {
        return root->RunHook(/*before=*/false, event);
      };
    }
    write_metrics = [root](const std::string&, const std::string& text) {
      return root->WriteMetrics(text);
    };
    started = MakePull(pull.options);
  } else {
    LogTlsWarnings(pull.options.tls, &console);
    LogCertificateEnds(pull.options.tls, &console);
    SetHooks(&pull);
    started = std::make_unique<PullWithoutLeftCommand>(pull.options);
  }
  MeasuredPull operation(pull, std::move(started), write_metrics);
  const std::unique_ptr<MetricsEndpoint> endpoint =
      ShowMetrics(pull, &operation, &console);
  const PullMode mode = pull.options.mode;
  return RunOperation(PullModeName(mode), pull.common, &console, &operation,
                      PullReport,
                      [&] { Reload(mode, arguments, &operation, &console); });
}

int PullAs(uid_t account, const std::vector<std::string>& arguments,
           PullArguments pull) {
  Console console(pull.common);
  LogTlsWarnings(pull.options.tls, &console);
  LogCertificateEnds(pull.options.tls, &console);
  const rocksdb::Status status =
      EndLeftCommand(pull.options.target_dir, console.log_function());
  if (!status.ok()) {
    return FinishCommand(PullModeName(pull.options.mode), status, "target", "",
                         &console);
  }
  PullArguments hooks = pull;
  SetHooks(&hooks);
  RootDuties duties = {pull.options.target_dir,    hooks.options.before_swap,
                       hooks.options.after_swap,   nullptr,
                       &pull.options.tls,          console.log_function()};
  if (!pull.metrics.file.empty()) {
    duties.write_metrics = [path = pull.metrics.file](const std::string& text) {
      return WriteMetricsFile(path, text);
    };
  }
  return RunAs(account, duties, arguments,
               [&pull](const std::vector<std::string>& words, RootSide* root) {
                 return PullHere(words, pull, root);
               });
}

int RunJob(PullMode mode, const std::vector<std::string>& arguments) {
  PullArguments pull;
  const rocksdb::Status usage = ParsePull(mode, arguments, &pull);
  if (!usage.ok()) {
    return ReportUsage(PullModeName(mode), usage);
  }
  HoldReloadSignal();
  pull.options.command_line = CommandLine(PullModeName(mode), arguments);
  const std::optional<uint32_t> account =
      AccountOfTarget(pull.options.target_dir);
  return account.has_value() ? PullAs(*account, arguments, pull)
                             : PullHere(arguments, pull, nullptr);
}

}  // namespace

int RunPull(const std::vector<std::string>& arguments) {
  return RunJob(PullMode::kPull, arguments);
}

int RunRefresh(const std::vector<std::string>& arguments) {
  return RunJob(PullMode::kRefresh, arguments);
}

int RunSwap(const std::vector<std::string>& arguments) {
  return RunJob(PullMode::kSwap, arguments);
}

}  // namespace sstferry
