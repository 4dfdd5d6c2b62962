// Implements the commands sstferry follow, promote and view.
#include <memory>
#include <optional>
#include <string>

#include "format/printable.h"
#include "sstferry/follow.h"
#include "sstferry/target.h"
#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/console.h"
#include "tools/sstferry/hook.h"
#include "tools/sstferry/metrics_endpoint.h"
#include "tools/sstferry/progress.h"
#include "tools/sstferry/run.h"
#include "tools/sstferry/run_as.h"
#include "tools/sstferry/signals.h"
#include "tools/sstferry/standby_metrics.h"
#include "tools/sstferry/standby_report.h"

namespace sstferry {
namespace {

using rocksdb::Status;

std::string PromotedText(const StandbyState& state) {
  return "promoted: " + Printable(state.dir) + " is a database at sequence " +
         std::to_string(state.sequence) + "\n";
}

// Sets *hook to a hook that runs `command`, the command of `option`. If
// `command` is empty, sets nothing. If `root` is not null, root's process runs
// the command, otherwise this process does.
void SetHook(const char* option, const std::string& command, RootSide* root,
             SwapHook* hook, PromoteOptions* options) {
  if (command.empty()) {
    return;
  }
  const bool is_before = hook == &options->before;
  options->hook_words += std::string(" ") + option + " " + ShellWord(command);
  if (root == nullptr) {
    *hook = MakeCommandHook(option, command, std::nullopt, options->log);
  } else {
    *hook = [root, is_before](const SwapEvent& event) {
      return root->RunHook(is_before, event);
    };
  }
}

void SetPromoteHooks(RootSide* root, PromoteArguments* promote) {
  PromoteOptions* const options = &promote->options;
  SetHook("--before", promote->before, root, &options->before, options);
  SetHook("--after", promote->after, root, &options->after, options);
}

// Runs the job, reports its result and returns the exit code. If the job
// succeeds, `text` formats its result.
template <typename Text>
int RunJob(const char* command, const CommonArguments& common,
           Console* console, StandbyJob* job, Text text) {
  StandbyState state;
  Status status;
  {
    const StopWatcher watcher([job] {
      NotifyStopping().PermitUncheckedError();  // best effort
      job->Cancel();
    });
    status = job->Run(&state);
  }
  console->DropProgress();  // the result replaces the progress line
  const auto json = [&] { return StandbyJson(command, status, state); };
  const std::string result = common.json   ? json()
                             : status.ok() ? text(state)
                                           : "";
  return FinishCommand(command, status, "", result, console, json);
}

// Promotes a standby in this process. If `root` is not null, root's process
// runs the hooks, otherwise this process does.
int PromoteHere(PromoteArguments promote, RootSide* root) {
  Console console(promote.common, stderr, ScreenFor(root));
  promote.options.log = console.log_function();
  SetPromoteHooks(root, &promote);
  const std::unique_ptr<StandbyJob> job = MakePromote(promote.options);
  return RunJob("promote", promote.common, &console, job.get(), PromotedText);
}

}  // namespace

int RunFollow(const std::vector<std::string>& arguments) {
  FollowArguments follow;
  const Status usage = ParseFollow(arguments, &follow);
  if (!usage.ok()) {
    return ReportUsage("follow", usage);
  }
  Console console(follow.common);
  follow.options.pull.log = console.log_function();
  follow.options.pull.keeps_old = false;
  LogTlsWarnings(follow.options.pull.tls, &console);
  StandbyMetrics metrics(follow.options.into_archive
                             ? follow.options.store.where.ToString()
                             : follow.options.pull.target_dir,
                         follow.options.pull.tls);
  // Publishes the metrics before the job makes a standby. If publishing fails,
  // the command then leaves no new standby behind.
  ShownMetrics shown;
  const Status showing = ShowMetrics(
      follow.metrics, follow.options.pull.tls,
      [&metrics] { return metrics.Collect().Text(); },
      [&metrics] { return metrics.FileText(); }, &console, &shown);
  if (!showing.ok()) {
    return FinishCommand("follow", showing, "", "", &console);
  }
  bool is_ready = false;
  std::string filtered;  // the FilteredText() that was logged last
  follow.options.on_state = [&](const StandbyState& state) {
    if (!is_ready) {
      is_ready = true;
      console.Log(LogLevel::kInfo,
                  "following " + Printable(state.source) + " into " +
                      Printable(state.dir) + " at sequence " +
                      std::to_string(state.sequence));
    }
    if (FilteredText(state) != filtered) {
      filtered = FilteredText(state);
      console.Log(LogLevel::kInfo,
                  filtered.empty()
                      ? "no column family has a compaction filter any longer"
                      : "the followed state is " + filtered +
                            "; --exact-filters takes a cut after each of "
                            "their compactions");
    }
    metrics.Take(state);
    const Status told = NotifyReady(StandbyLine(state));
    if (!told.ok()) {
      console.Log(LogLevel::kDebug, MessageOf(told));
    }
    if (ShowsInPlace(follow.common.progress, console)) {
      console.RedrawProgress(
          FitColumns(StandbyColumns(state), console.columns() - 1));
    }
  };
  // Notifies systemd before the job runs, because its first cut may take hours
  // and systemd would stop waiting.
  const Status ready = NotifyReady("taking a cut, if none was taken yet");
  if (!ready.ok()) {
    console.Log(LogLevel::kWarning, MessageOf(ready));
  }
  const std::unique_ptr<StandbyJob> job = MakeFollow(follow.options);
  return RunJob("follow", follow.common, &console, job.get(),
                [](const StandbyState& state) {
                  return "stopped: " + StandbyLine(state) + "\n";
                });
}

int RunPromote(const std::vector<std::string>& arguments) {
  PromoteArguments promote;
  const Status usage = ParsePromote(arguments, &promote);
  if (!usage.ok()) {
    return ReportUsage("promote", usage);
  }
  Console console(promote.common);
  const Status ended =
      EndLeftCommand(promote.options.dir, console.log_function());
  if (!ended.ok()) {
    return FinishCommand("promote", ended, "", "", &console);
  }
  const std::optional<uint32_t> account = AccountOfTarget(promote.options.dir);
  if (!account.has_value()) {
    return PromoteHere(promote, nullptr);
  }
  HoldReloadSignal();
  PromoteArguments hooks = promote;
  hooks.options.log = console.log_function();
  SetPromoteHooks(nullptr, &hooks);
  TlsFiles no_tls;
  RootDuties duties;
  duties.target_dir = promote.options.dir;
  duties.before_swap = hooks.options.before;
  duties.after_swap = hooks.options.after;
  duties.tls = &no_tls;
  duties.command = "promote";
  duties.log = console.log_function();
  return RunAs(*account, duties, arguments,
               [&promote](const std::vector<std::string>&, RootSide* root) {
                 return PromoteHere(promote, root);
               });
}

int RunView(const std::vector<std::string>& arguments) {
  ViewArguments view;
  const Status usage = ParseView(arguments, &view);
  if (!usage.ok()) {
    return ReportUsage("view", usage);
  }
  Console console(view.common);
  view.options.log = console.log_function();
  const std::unique_ptr<StandbyJob> job = MakeView(view.options);
  return RunJob("view", view.common, &console, job.get(),
                [&view](const StandbyState&) {
                  return "view: " + Printable(view.options.view_dir) +
                         " can be opened\n";
                });
}

}  // namespace sstferry
