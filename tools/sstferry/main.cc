// The main program of sstferry. Finds the command that the first word names and
// runs it.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <thread>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <nlohmann/json.hpp>

#include "format/end_state.h"
#include "format/nearest.h"
#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/commands.h"
#include "tools/sstferry/console.h"
#include "tools/sstferry/help.h"
#include "tools/sstferry/hook.h"
#include "tools/sstferry/result_json.h"
#include "tools/sstferry/run.h"
#include "tools/sstferry/signals.h"
#include "tools/sstferry/version.h"

namespace sstferry {
namespace {

using rocksdb::Status;
using Run = int (*)(const std::vector<std::string>& arguments);

const std::map<std::string, Run> kRuns = {
    {"serve", RunServe},   {"pull", RunPull},     {"refresh", RunRefresh},
    {"swap", RunSwap},     {"verify", RunVerify}, {"plan", RunPlan},
    {"status", RunStatus}, {"ls", RunLs},         {"release", RunRelease},
    {"cert", RunCert},     {"archive", RunArchive},
    {"follow", RunFollow}, {"promote", RunPromote}, {"view", RunView},
    {"units", RunUnits},
};

int Print(const std::string& text) {
  if (WriteResult(text)) {
    return 0;
  }
  std::fputs("sstferry: standard output could not be written\n", stderr);
  return ExitCodeOf(EndState::kInternal);
}

Status UnknownCommand(const std::string& name) {
  std::vector<std::string> known = {"help"};
  for (const Command& command : Commands()) {
    known.push_back(command.name);
  }
  return Status::InvalidArgument("command: expected " + CommandNames() +
                                 ", found \"" + name + "\"" +
                                 DidYouMean(name, known));
}

int PrintHelp(const Command& command, const std::string& group) {
  std::string text;
  if (!CommandHelp(command, group, &text)) {
    return ReportUsage(command.name,
                       Wrong("--help", HelpGroupNames(command), group));
  }
  return Print(text);
}

// Runs sstferry help COMMAND, with an optional action and group of options.
int Help(const std::vector<std::string>& words) {
  if (words.empty()) {
    return Print(GeneralHelp());
  }
  const Command* command = FindCommand(words[0]);
  if (command == nullptr) {
    return ReportUsage("", UnknownCommand(words[0]));
  }
  const std::string second = words.size() > 1 ? words[1] : "common";
  const std::optional<Command> action = FindAction(words[0], second);
  return action.has_value()
             ? PrintHelp(*action, words.size() > 2 ? words[2] : "common")
             : PrintHelp(*command, second);
}

// Returns the group of options for which --help or --help=GROUP requests help.
// Returns nullopt if the command line requests no help.
std::optional<std::string> HelpGroupIn(const std::vector<std::string>& words) {
  const std::string prefix = "--help=";
  std::optional<std::string> group;
  for (const std::string& word : words) {
    if (word == "--help" || word == "-h") {
      group = group.value_or("common");
    } else if (word.starts_with(prefix)) {
      group = word.substr(prefix.size());
    }
  }
  if (group && std::find(words.begin(), words.end(), "--all") != words.end()) {
    group = "all";
  }
  return group;
}

// Raises the soft limit of open files to the hard limit, because a server opens
// many files at once. The usual soft limit of 1024 protects programs that call
// select(); this program does not call it.
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);  // ignores errors: the old limit stays
  }
}

// Limits malloc of glibc to two arenas per core instead of eight. glibc keeps
// memory that a thread frees in the arena of the thread. Each transfer has its
// own threads, so a server that needs 10 MB would grow for hours. It would grow
// until it has as many arenas as it ever had threads at once. With two arenas
// per core, threads that compute at once still have separate arenas.
void LimitArenas() {
#if defined(__GLIBC__)
  if (std::getenv("MALLOC_ARENA_MAX") == nullptr) {
    const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
    mallopt(M_ARENA_MAX, static_cast<int>(2 * cores));  // ignores errors
  }
#endif
}

// Ends the process when the system has no memory or no thread for it. The next
// start removes files that this process leaves beside a source, as after a
// crash.
[[noreturn]] void EndWithReason() {
  const char* what = "a thread could not be started";
  if (const std::exception_ptr error = std::current_exception()) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& known) {
      what = known.what();
    } catch (...) {
      what = "an unknown exception";
    }
  }
  std::fprintf(stderr,
               "sstferry: INTERNAL: %s: too little memory or too few threads "
               "(ulimit -v, ulimit -u)?\n",
               what);
  _exit(ExitCodeOf(EndState::kInternal));
}

// Opens standard input, output and error if the caller has closed them.
// Otherwise a database file could get descriptor 1 or 2, and messages would be
// written into the file. If standard output was closed, writing to it still
// fails.
void OpenStandardFiles() {
  for (;;) {
    int fd = open("/dev/null", O_RDWR);
    if (fd < 0) {
      fd = open("/", O_RDONLY | O_DIRECTORY);
    }
    if (fd == STDOUT_FILENO) {
      close(fd);
      fd = open("/", O_RDONLY | O_DIRECTORY);  // writing to it fails
    }
    if (fd < 0 || fd > STDERR_FILENO) {
      close(fd);
      return;
    }
  }
}

// Changes the umask so that the owner of new files can always access them, even
// if the umask was 0777.
void OpenToOwner() {
  const mode_t mask = umask(0077);
  umask(mask & 0077);
}

// Returns an error if /proc is not mounted. Only /proc shows the paths of open
// directories, the processes that have a database open, and the present limits.
Status CheckProc() {
  return access("/proc/self/fd", R_OK | X_OK) == 0
             ? Status::OK()
             : MakeStatus(EndState::kRefused,
                          "expected /proc, found none, or that of another PID "
                          "namespace: sstferry needs it to name directories "
                          "that it has open",
                          "mount -t proc proc /proc");
}

// Runs a command of sstferry. When it has ended and released its locks and
// files, runs the shell command of --on-success or --on-failure.
int RunJob(const Command& command, const std::vector<std::string>& arguments) {
  EndCommands ends;
  if (!ParseEndCommands(command.name, arguments, &ends).ok()) {
    ends = EndCommands();  // the command parses again and reports the error
  }
  JobEnd end;
  end.command = ends.job;
  if (!ends.on_success.empty() || !ends.on_failure.empty()) {
    SetResultReceiver(
        [&end](const std::string& json) { end.summary = json; });
  }
  end.exit_code = kRuns.at(command.name)(arguments);
  SetResultReceiver(nullptr);
  const bool is_good = end.exit_code == 0;
  const std::string& run = is_good ? ends.on_success : ends.on_failure;
  if (run.empty() || end.exit_code == kExitUsage) {
    return end.exit_code;
  }
  if (!nlohmann::ordered_json::accept(end.summary)) {
    // There is no JSON object, for example because the child of RunAs() was
    // killed.
    nlohmann::ordered_json json = ResultJson(
        command.name,
        MakeStatus(EndState::kInternal, "the job ended without a result"), "");
    json["exit_code"] = end.exit_code;
    end.summary = DumpJson(json);
  }
  const char* const option = is_good ? "--on-success" : "--on-failure";
  Console console(ends.common);
  console.Log(LogLevel::kInfo,
              std::string("running the command of ") + option);
  const Status status = RunEndCommand(option, run, end);
  if (status.ok()) {
    return end.exit_code;
  }
  // If the job failed, returns the exit code of the job even if the shell
  // command failed, too. A scheduler needs the exit code of the job.
  console.Log(is_good ? LogLevel::kError : LogLevel::kWarning,
              MessageOf(status));
  return is_good ? ExitCodeOf(EndStateOf(status)) : end.exit_code;
}

int Main(const std::vector<std::string>& words) {
  // Looks for options only before "--". The words after "--" are operands.
  const std::vector<std::string> options(
      words.begin(), std::find(words.begin(), words.end(), "--"));
  const auto given = [&](const char* option) {
    return std::find(options.begin(), options.end(), option) != options.end();
  };
  if (given("--version") || given("-V")) {
    return Print(VersionText());
  }
  const std::optional<std::string> help = HelpGroupIn(options);
  const bool has_command =
      !words.empty() && !words[0].empty() && words[0][0] != '-';
  if (!has_command && help) {
    return Print(GeneralHelp());
  }
  if (!has_command) {
    return ReportUsage("", Status::InvalidArgument("expected a command: " +
                                                   CommandNames()));
  }
  if (words[0] == "help") {
    return Help({words.begin() + 1, words.end()});
  }
  const Command* command = FindCommand(words[0]);
  if (command == nullptr) {
    return ReportUsage("", UnknownCommand(words[0]));
  }
  if (help) {
    const std::optional<Command> action =
        words.size() > 1 ? FindAction(words[0], words[1]) : std::nullopt;
    return PrintHelp(action.has_value() ? *action : *command, *help);
  }
  const Status proc = CheckProc();
  if (!proc.ok()) {
    std::fprintf(stderr, "%s\nnext: %s\n",
                 FailureLine(command->name, proc, "").c_str(),
                 NextOf(proc).c_str());
    return ExitCodeOf(EndStateOf(proc));
  }
  return RunJob(*command, {words.begin() + 1, words.end()});
}

}  // namespace
}  // namespace sstferry

int main(int argc, char** argv) {
  sstferry::OpenStandardFiles();
  std::set_terminate(sstferry::EndWithReason);
  sstferry::HoldSignals();
  sstferry::RaiseDescriptorLimit();
  sstferry::LimitArenas();
  sstferry::OpenToOwner();
  try {
    return sstferry::Main({argv + 1, argv + argc});
  } catch (const std::exception&) {
    sstferry::EndWithReason();  // the cause is a lack of memory or threads
  }
}
