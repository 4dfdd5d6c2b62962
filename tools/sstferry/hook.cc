#include "tools/sstferry/hook.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <sstream>
#include <system_error>
#include <vector>

#include "format/digest.h"
#include "format/end_state.h"
#include "format/hex.h"
#include "sstferry/descriptor.h"
#include "sstferry/spawn.h"
#include "tools/sstferry/left_process.h"
#include "tools/sstferry/signals.h"

extern char** environ;

namespace sstferry {
namespace {

using rocksdb::Status;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kGrace{10};
constexpr int kLookMillis = 50;
constexpr char kShell[] = "/bin/sh";
// A shell script that waits for a line on descriptor 3 (the gate) and then runs
// the command in the same process. If the gate is closed, the script exits.
constexpr char kWait[] =
    "read -r go <&3 && exec 3<&- && exec /bin/sh -c \"$1\"";

// A shell command, and the conditions under which it is ended.
struct ShellCommand {
  std::string option;  // for messages
  std::string command;
  std::vector<std::string> variables;  // such as "NAME=VALUE"
  std::string note;  // file that records the process; empty if there is none
  std::optional<steady_clock::time_point> until;
  std::function<bool()> stopped;
  const char* why_stopped = "";
};

// Returns the environment of this process, in which the command's variables are
// added or replaced.
std::vector<std::string> EnvironmentFor(const ShellCommand& shell) {
  std::vector<std::string> all = shell.variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string one = *variable;
    const std::string name = one.substr(0, one.find('=') + 1);
    if (std::none_of(shell.variables.begin(), shell.variables.end(),
                     [&name](const std::string& own) {
                       return own.starts_with(name);
                     })) {
      all.push_back(one);
    }
  }
  return all;
}

// Starts the child process. It inherits the standard streams and `gate`, but no
// other descriptors.
Status StartCommand(const ShellCommand& shell, int gate, pid_t* child) {
  ProgramStart start;
  start.words = {kShell, "-c", kWait, kShell, shell.command};
  start.environment = EnvironmentFor(shell);
  start.out = STDERR_FILENO;
  start.third = gate;  // kWait reads descriptor 3
  start.own_group = true;
  return Spawn(start, child);
}

std::string WorkspaceOf(std::string target_dir) {
  while (target_dir.size() > 1 && target_dir.back() == '/') {
    target_dir.pop_back();
  }
  return target_dir + ".sstferry";
}

// The directory for the notes (NoteOfCommand()) of root's processes. Only root
// can write there. A reboot deletes the notes and also ends the commands.
constexpr char kRootNotes[] = "/run/sstferry";

// The content of a note: the name (left_process.h) of the command's process,
// and the name of the process that waits for the command.
struct CommandNote {
  std::string command;
  std::string waiter;
};

// Reads a note. Returns an empty note if another user may have written it.
// Does not follow symbolic links.
CommandNote ReadNote(const std::string& path) {
  const Descriptor file = OpenPath(path, O_RDONLY);
  struct stat info;
  std::array<char, 512> text{};
  const bool is_own = file.is_open() && fstat(file.get(), &info) == 0 &&
                      S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
                      (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  const ssize_t got = is_own ? read(file.get(), text.data(), text.size()) : 0;
  std::istringstream lines(
      std::string(text.data(), got > 0 ? static_cast<size_t>(got) : 0));
  CommandNote note;
  std::getline(lines, note.command);
  std::getline(lines, note.waiter);
  return note;
}

void WriteNote(const std::string& path, const CommandNote& note) {
  if (geteuid() == 0) {
    (void)mkdir(kRootNotes, 0755);  // fails if the directory exists
  }
  unlink(path.c_str());
  const Descriptor file =
      OpenPath(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
  const std::string text = note.command + "\n" + note.waiter + "\n";
  if (file.is_open() && write(file.get(), text.data(), text.size()) < 0) {
    unlink(path.c_str());
  }
}

// Starts a shell, records its process in the note, and then lets the command
// begin. (PR_SET_PDEATHSIG could replace the note, but it would end only the
// shell and not the shell's children.)
Status Start(const std::string& what, const ShellCommand& shell,
             pid_t* child) {
  int gate[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, gate) != 0) {
    return MakeStatus(EndState::kRefused, what + " could not be started: " +
                                              strerror(errno));
  }
  const Status status = StartCommand(shell, gate[0], child);
  close(gate[0]);
  if (status.ok()) {
    // Does not sync the note: a power cut also ends the command. Ignores
    // errors: the command must run even if the disk is full.
    if (!shell.note.empty()) {
      WriteNote(shell.note,
                {NameOfProcess(*child), NameOfProcess(getpid())});
    }
    // send() fails only if the child has ended. RunCommand() notices it.
    (void)send(gate[1], "\n", 1, MSG_NOSIGNAL);
  }
  close(gate[1]);
  return status.ok() ? status
                     : MakeStatus(EndState::kRefused,
                                  what + " could not be started: " +
                                      MessageOf(status));
}

// Waits at most 50 ms for the end of the child. If the child has ended, reaps
// it and returns true.
bool Ended(pid_t child, int descriptor, int* state) {
  if (descriptor >= 0) {
    pollfd wait = {descriptor, POLLIN, 0};
    poll(&wait, 1, kLookMillis);
  } else {
    poll(nullptr, 0, kLookMillis);
  }
  return ReapChild(child, state);
}

Status Outcome(const std::string& what, int state) {
  if (WIFEXITED(state) && WEXITSTATUS(state) == 0) {
    return Status::OK();
  }
  return MakeStatus(
      EndState::kRefused,
      what + (state == kUnknownEnd ? " ended with an unknown code"
              : WIFEXITED(state)
                  ? " ended with code " + std::to_string(WEXITSTATUS(state))
                  : " was ended by signal " + std::to_string(WTERMSIG(state))));
}

Status RunCommand(const ShellCommand& shell) {
  const std::string what = shell.option + " \"" + shell.command + "\"";
  pid_t child = 0;
  RETURN_IF_ERROR(Start(what, shell, &child));
  const int descriptor =
      static_cast<int>(syscall(SYS_pidfd_open, child, 0));  // -1 on failure
  int state = 0;
  Status ended;
  std::optional<steady_clock::time_point> kill_at;
  while (!Ended(child, descriptor, &state)) {
    const steady_clock::time_point now = steady_clock::now();
    const bool late = shell.until && now >= *shell.until;
    if (kill_at) {
      if (now >= *kill_at) {
        SignalChild(child, SIGKILL, /*whole_group=*/true);
      }
    } else if (late || shell.stopped()) {
      ended = MakeStatus(late ? EndState::kDeadline : EndState::kCancelled,
                         what + (late ? " was ended: it took too long"
                                      : std::string(" was ended: ") +
                                            shell.why_stopped));
      SignalChild(child, SIGTERM, /*whole_group=*/true);
      kill_at = now + kGrace;
    }
  }
  if (descriptor >= 0) {
    close(descriptor);
  }
  return ended.ok() ? Outcome(what, state) : ended;
}

}  // namespace

std::string NoteOfCommand(const std::string& target_dir) {
  if (geteuid() != 0) {
    std::error_code error;
    const std::string workspace = WorkspaceOf(target_dir);
    // With --all, `target_dir` is a directory of replicas without a workspace.
    return std::filesystem::exists(workspace, error)
               ? workspace + "/staging/command"
               : target_dir + "/sstferry.command";
  }
  std::error_code error;
  return std::string(kRootNotes) + "/" +
         ToHex(DigestOf(std::filesystem::absolute(target_dir, error)
                            .lexically_normal()
                            .string()));
}

SwapHook MakeCommandHook(const std::string& option, const std::string& command,
                         std::optional<steady_clock::time_point> until,
                         const LogFunction& log) {
  return [=](const SwapEvent& event) {
    if (log) log(LogLevel::kInfo, "running the command of " + option);
    return RunCommand(
        {option, command,
         {"SSTFERRY_TARGET_DIR=" + event.target_dir,
          "SSTFERRY_TRANSFER_ID=" + event.transfer_id,
          std::string("SSTFERRY_EXCHANGED=") +
              (event.exchanged ? "yes" : "no")},
         NoteOfCommand(event.target_dir), until, event.stopped,
         "the pull was stopped"});
  };
}

Status RunEndCommand(const std::string& option, const std::string& command,
                     const JobEnd& end) {
  // The file is in memory, not on disk: nothing is left behind if the process
  // is killed, and the disk may be full or read-only.
  const Descriptor file(memfd_create("summary", MFD_CLOEXEC));
  if (!file.is_open() ||
      write(file.get(), end.summary.data(), end.summary.size()) !=
          static_cast<ssize_t>(end.summary.size())) {
    return MakeStatus(EndState::kInternal,
                      option + ": no memory for the summary: " +
                          strerror(errno));
  }
  DropStopSignals();  // earlier signals were meant for the job
  std::atomic<bool> stopped{false};
  const StopWatcher watcher([&stopped] { stopped = true; });
  const Status status = RunCommand(
      {option, command,
       {"SSTFERRY_COMMAND=" + end.command,
        "SSTFERRY_EXIT_CODE=" + std::to_string(end.exit_code),
        "SSTFERRY_SUMMARY=/proc/" + std::to_string(getpid()) + "/fd/" +
            std::to_string(file.get())},
       /*note=*/"", /*until=*/std::nullopt,
       [&stopped] { return stopped.load(); }, "sstferry was stopped"});
  return status.ok() ? status
                     : MakeStatus(EndState::kInternal, MessageOf(status));
}

Status EndLeftCommand(const std::string& target_dir, const LogFunction& log) {
  const CommandNote note = ReadNote(NoteOfCommand(target_dir));
  if (note.waiter.empty() || IsRunning(note.waiter)) {
    return Status::OK();
  }
  return EndLeftProcess(note.command, "SSTFERRY_TARGET_DIR=" + target_dir,
                        "a command of an earlier run", kGrace, log);
}

}  // namespace sstferry
