// Implements the commands sstferry pull, refresh and swap.
#include "format/printable.h"
#include "format/quantity.h"
#include "tools/sstferry/all_databases.h"
#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/console.h"
#include "tools/sstferry/hook.h"
#include "tools/sstferry/measured_pull.h"
#include "tools/sstferry/metrics_file.h"
#include "tools/sstferry/old_databases.h"
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
#include <filesystem>
#include <optional>
#include <system_error>

namespace sstferry {
std::string MethodLine(const Summary& summary) {
  return summary.method_reason.empty()
             ? ""
             : "method: " + summary.method + " (" +
                   Printable(summary.method_reason) + ")\n";
}

std::string OpensLine(const Summary& summary) {
  return summary.opens_since.empty()
             ? ""
             : "opens with RocksDB " + Printable(summary.opens_since) +
                   " or later (" + Printable(summary.opens_because) + ")\n";
}

namespace {

std::string PullSeconds(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f s", seconds);
  return text.data();
}

// Returns the rate of the transfer, such as ", 13.5 MB/s". Returns "" if no
// data was moved.
std::string Rate(const Summary& summary) {
  const uint64_t bytes = summary.sst_bytes - summary.sst_bytes_resumed;
  const double seconds = TransferSeconds(summary);
  return bytes == 0 || seconds <= 0
             ? ""
             : ", " + FormatBytes(static_cast<uint64_t>(
                          static_cast<double>(bytes) / seconds)) + "/s";
}

// Returns the amount of data that the pull has changed in the replica, such as
// "6,950 keys changed".
std::string Change(const Summary& summary) {
  const bool links = summary.method != "clone" && summary.files_reused != 0;
  if (IsInPlace(summary) || summary.chunks_delta != 0 || links) {
    const uint64_t keys = summary.entries + summary.entries_deleted;
    return keys == 0 ? "nothing changed"
                     : FormatCount(keys, "key") + " changed";
  }
  if (summary.method == "clone" && summary.files_cloned == 0) {
    return "nothing changed";
  }
  if (summary.method == "clone") {
    return FormatCount(summary.files_cloned, "file") +
           (summary.files_reused == 0
                ? ""
                : " of " + FormatNumber(summary.files_cloned +
                                        summary.files_reused) + " new");
  }
  return FormatCount(summary.entries, "key");
}

// Returns the first line of the result, for example "replica is as of
// 2026-11-25T02:00:03Z, 6,950 keys changed, 14.0 MB sent, application down
// 0.05 s".
std::string ReplicaLine(const Summary& summary) {
  std::string text =
      "replica is " +
      (summary.snapshot_taken_seconds == 0
           ? std::string("complete")
           : "as of " + Rfc3339(summary.snapshot_taken_seconds)) +
      ", " + Change(summary) + ", " + FormatBytes(summary.wire_bytes) +
      " sent";
  if (summary.mode == PullModeName(PullMode::kSwap)) {
    text += summary.exchanged ? ", application down " +
                                    PullSeconds(summary.outage_seconds)
                              : ", not swapped";
  }
  return text + "\n";
}

std::string SourceLine(const Summary& summary) {
  return "source: " + summary.source +
         (summary.source_database_id.empty()
              ? std::string()
              : " (database " + summary.source_database_id + ")") +
         ", " +
         FormatCount(summary.column_families.size(), "column family",
                     "column families") +
         " at sequence " + std::to_string(summary.snapshot_sequence) +
         (summary.sequence_old == 0
              ? ""
              : ", was " + std::to_string(summary.sequence_old)) +
         "\n";
}

// Returns the line with the method, amount and rate, for example "method:
// clone, 13.7 MB in 9 units; 1.52 s, 9.0 MB/s (asked for)". The reason for the
// method is in parentheses at the end, because it may be long.
std::string HowLine(const Summary& summary) {
  std::string text;
  if (IsInPlace(summary)) {
    text = "refresh: parts: " + FormatNumber(summary.parts_unchanged) +
           " unchanged, " + FormatNumber(summary.parts_compared) +
           " compared, " + FormatNumber(summary.parts_sent) + " sent; " +
           FormatBytes(summary.bytes_read) + " read, " +
           FormatBytes(summary.bytes_written) + " written";
  } else {
    text = "method: " + summary.method + ", " +
           FormatBytes(summary.sst_bytes) + " in " +
           FormatCount(summary.chunks,
                       summary.method == "clone" ? "unit" : "chunk");
  }
  if (summary.chunks_unchecked != 0) {
    text += ", " + FormatNumber(summary.chunks_unchecked) +
            " of them without checksums";
  }
  if (summary.files_reused != 0) {
    text += ", " + FormatCount(summary.files_reused, "file") + " with " +
            FormatBytes(summary.bytes_reused) + " reused";
  }
  if (summary.chunks_resumed != 0) {
    text += ", " + FormatBytes(summary.sst_bytes_resumed) +
            " of them received by earlier runs";
  }
  text += "; " + PullSeconds(summary.seconds);
  const double deletion = summary.seconds - TransferSeconds(summary);
  constexpr double kWorthSaying = 0.01;
  text += deletion < kWorthSaying
              ? ""
              : ", " + PullSeconds(deletion) + " of it for deletions";
  text += Rate(summary);
  return text + (IsInPlace(summary) || summary.method_reason.empty()
                     ? "\n"
                     : " (" + Printable(summary.method_reason) + ")\n");
}

std::string VerdictLine(const Summary& summary) {
  const std::string opens = OpensLine(summary);
  return (summary.verified ? "verified: equal"
                           : "not verified: --verify, or sstferry verify "
                             "SOURCE TARGET_DIR, compares both sides") +
         (opens.empty() ? "\n" : "; " + opens);
}

// Returns a line with the time for which the source slowed down to spare its
// application, and the reasons. Returns "" if it did not slow down.
std::string HeldLine(const Summary& summary) {
  constexpr double kWorthSaying = 0.1;
  double sum = 0;
  std::string why;
  for (const auto& [stage, waits] :
       {std::pair("held_cpu", "for CPUs"), std::pair("held_io", "for its disk"),
        std::pair("held_latency", "for CPUs, estimated from the source's own "
                                  "threads")}) {
    const auto held = summary.source_stage_seconds.find(stage);
    if (held != summary.source_stage_seconds.end() && held->second > 0) {
      sum += held->second;
      why += std::string(why.empty() ? "" : ", ") + PullSeconds(held->second) +
             " " + waits;
    }
  }
  return sum < kWorthSaying
             ? ""
             : "throttled: " + PullSeconds(sum) +
                   ", while the source's application waited (" + why +
                   "); --max-rate none turns this off\n";
}

}  // namespace

std::string PullReport(const Summary& summary) {
  if (summary.state == "present") {
    return summary.target + " holds a database already: nothing was pulled\n";
  }
  return ReplicaLine(summary) + SourceLine(summary) + HowLine(summary) +
         HeldLine(summary) +
         VerdictLine(summary);
}

namespace {

// Minimum time for the command of --after-swap, which starts the application.
// The command gets this time even after --deadline.
constexpr std::chrono::seconds kLeastAfterSwap{60};

void SetHooks(PullArguments* pull) {
  using std::chrono::steady_clock;
  std::optional<steady_clock::time_point> until;
  if (pull->options.deadline.count() > 0) {
    until = steady_clock::now() + pull->options.deadline;
  }
  if (!pull->before_swap.empty()) {
    pull->options.before_swap =
        MakeCommandHook("--before-swap", pull->before_swap, until,
                        pull->options.log);
  }
  if (!pull->after_swap.empty()) {
    pull->options.after_swap = [until, command = pull->after_swap,
                                log = pull->options.log](
                                   const SwapEvent& event) {
      std::optional<steady_clock::time_point> limit = until;
      if (limit) {
        limit = std::max(*limit, steady_clock::now() + kLeastAfterSwap);
      }
      return MakeCommandHook("--after-swap", command, limit, log)(event);
    };
  }
}

// A pull that first ends a hook's command of an earlier pull into the same
// directory. The earlier pull was killed, but its command still runs.
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

// Returns true if a word of the command line names SOURCE or TARGET_DIR by a
// relative path. May also return true if the config file names SOURCE.
bool IsRelative(const PullOptions& options,
                const std::vector<std::string>& arguments) {
  const SourceAddress& source = options.source;
  const std::string local = source.is_archive()     ? source.archive->directory
                            : source.is_directory() ? source.directory
                                                    : "";
  return !options.target_dir.starts_with('/') ||
         std::none_of(arguments.begin(), arguments.end(),
                      [&local](const std::string& word) {
                        // The address of an archive may end with @SET.
                        return word.starts_with(local) &&
                               (local.empty() || word.size() == local.size() ||
                                word[local.size()] == '@');
                      });
}

// Returns the complete command line. It begins with cd if SOURCE or TARGET_DIR
// is relative.
// Quotes words that need quotes, which may not be the quotes that the operator
// typed.
std::string CommandLine(const std::string& command,
                        const std::vector<std::string>& arguments,
                        const PullOptions& options) {
  std::error_code error;
  const std::string here = std::filesystem::current_path(error).string();
  std::string line =
      IsRelative(options, arguments) && !here.empty()
          ? "cd " + ShellWord(here) + " && "
          : "";
  line += ShellWord(program_invocation_name) + " " + command;
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

// Pulls in this process. If `root` is not null, root's process runs the hooks
// and writes the metrics file, otherwise this process does. Reads `arguments`
// again on SIGHUP.
int PullHere(const std::vector<std::string>& arguments, PullArguments pull,
             RootSide* root) {
  Console console(pull.common, stderr, ScreenFor(root));
  pull.options.log = console.log_function();
  pull.options.keeps_old = pull.options.mode == PullMode::kSwap;
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
  if (pull.all) {
    const rocksdb::Status ended =
        root == nullptr
            ? EndLeftCommand(pull.options.target_dir, pull.options.log)
            : rocksdb::Status::OK();
    return !ended.ok()
               ? FinishCommand(PullModeName(pull.options.mode), ended, "target",
                               "", &console)
               : PullAll(pull, &console, write_metrics,
                         [&](Operation* mirror) {
                           Reload(pull.options.mode, arguments, mirror,
                                  &console);
                         });
  }
  MeasuredPull operation(pull, std::move(started), write_metrics,
                         ReadMetricsFile(pull.metrics.file));
  const PullMode mode = pull.options.mode;
  const int code =
      RunOperation(PullModeName(mode), pull.common, &console, &operation,
                   PullReport,
                   [&] { Reload(mode, arguments, &operation, &console); });
  if (code == 0 && mode == PullMode::kSwap) {
    RemoveOldDatabases(pull, {pull.options.target_dir}, &console);
  }
  return code;
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
                       &pull.options.tls,          console.log_function(),
                       pull.options.source.is_ssh(),
                       PullModeName(pull.options.mode)};
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
  pull.options.command_line =
      CommandLine(PullModeName(mode), arguments, pull.options);
  // With --all, TARGET_DIR contains the replicas. AccountOfTarget() must then
  // consider the owner of TARGET_DIR, who can rename replicas.
  const std::optional<uint32_t> account = AccountOfTarget(
      pull.options.target_dir + (pull.all ? "/replica" : ""));
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
