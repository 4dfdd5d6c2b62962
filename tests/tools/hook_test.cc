// Hook commands before and after an exchange and at the end of a job: their
// environment and their ends.
#include "tools/sstferry/hook.h"

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <memory>

#include <nlohmann/json.hpp>

#include "format/end_state.h"
#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"
#include "tools/sstferry/left_process.h"

namespace sstferry::hook_test {
namespace {

using rocksdb::Status;
using std::chrono::steady_clock;

SwapEvent Event() {
  SwapEvent event;
  event.target_dir = "/data/the target";
  event.transfer_id = std::string(32, 'a');
  event.stopped = [] { return false; };
  return event;
}

Status Run(const std::string& command, const SwapEvent& event = Event(),
           std::optional<steady_clock::time_point> until = std::nullopt) {
  return MakeCommandHook("--before-swap", command, until)(event);
}

void RequireEnds(const Status& status, EndState state,
                 const std::string& sentence) {
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == state);
  REQUIRE(MessageOf(status).find("--before-swap \"") == 0);
  REQUIRE(MessageOf(status).find(sentence) != std::string::npos);
}

TEST_CASE("A hook runs in a clean shell with the variables of the exchange",
          "[tools][hook]") {
  ScratchDir dir;
  const std::string out = dir / "out";
  SwapEvent event = Event();
  event.exchanged = true;
  setenv("SSTFERRY_EXCHANGED", "maybe", 1);
  // Signals blocked in this process are not blocked in the hook.
  sigset_t retained;
  sigemptyset(&retained);
  sigaddset(&retained, SIGTERM);
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &retained, &before);
  const Status status = Run(
      "echo \"$SSTFERRY_TARGET_DIR|$SSTFERRY_TRANSFER_ID|"
      "$SSTFERRY_EXCHANGED\" > " + out + " && grep SigBlk /proc/self/status "
      ">> " + out + " && ls /proc/self/fd | wc -l >> " + out,
      event);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  unsetenv("SSTFERRY_EXCHANGED");
  REQUIRE_OK(status);
  REQUIRE(BytesOf(out) == "/data/the target|" + std::string(32, 'a') +
                              "|yes\nSigBlk:\t0000000000000000\n4\n");
}

TEST_CASE("The error of a failed hook has its command and exit code",
          "[tools][hook]") {
  REQUIRE_OK(Run("true"));
  RequireEnds(Run("exit 7"), EndState::kRefused,
              "\"exit 7\" ended with code 7");
  RequireEnds(Run("/no/such/command"), EndState::kRefused, "code 127");
  RequireEnds(Run("kill -9 $$"), EndState::kRefused, "ended by signal 9");
}

TEST_CASE("A stop of the pull ends the hook and its child processes",
          "[tools][hook]") {
  ScratchDir dir;
  SwapEvent event = Event();
  // Stops the pull once the hook and its child process run.
  event.stopped = [&] { return std::filesystem::exists(dir / "child"); };
  RequireEnds(Run("(echo > " + (dir / "child") + "; sleep 600); true", event),
              EndState::kCancelled, "the pull was stopped");
}

TEST_CASE("A hook is ended at its deadline", "[tools][hook]") {
  RequireEnds(Run("sleep 600", Event(), steady_clock::now()),
              EndState::kDeadline, "it took too long");
}

// Returns the note of a hook with this name, for which no process waits.
std::string LeftNote(const std::string& hook) {
  std::string waiter = NameOfProcess(getpid());
  waiter.back() = waiter.back() == '0' ? '1' : '0';  // of another boot
  return hook + "\n" + waiter + "\n";
}

TEST_CASE("A note never ends a process that no hook started", "[tools][hook]") {
  ScratchDir dir;
  const std::string target = dir / "target";
  std::filesystem::create_directories(target + ".sstferry/staging");
  WriteBytes(target + ".sstferry/lock", "");
  const pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);
    pause();
    _exit(0);
  }
  while (getpgid(child) != child) {
  }
  const std::string note = NoteOfCommand(target);
  std::filesystem::create_directories(
      std::filesystem::path(note).parent_path());
  SECTION("a process of this user") {
    WriteBytes(note, LeftNote(NameOfProcess(child)));
    chmod(note.c_str(), 0600);
  }
  SECTION("a note that is a symbolic link") {
    WriteBytes(dir / "elsewhere", LeftNote(NameOfProcess(child)));
    std::filesystem::create_symlink(dir / "elsewhere", note);
  }
  SECTION("a note that others may write") {
    WriteBytes(note, LeftNote(NameOfProcess(child)));
    chmod(note.c_str(), 0666);
  }
  REQUIRE_OK(EndLeftCommand(target, nullptr));
  std::filesystem::remove(note);
  REQUIRE(kill(child, 0) == 0);
  int state = 0;
  REQUIRE(waitpid(child, &state, WNOHANG) == 0);
  kill(child, SIGKILL);
  REQUIRE(waitpid(child, &state, 0) == child);
}

TEST_CASE(
    "A hook left by a killed run is ended with its group, and nothing else",
    "[tools][hook]") {
  ScratchDir dir;
  const std::string target = dir / "target";
  const std::string note = NoteOfCommand(target);
  std::filesystem::create_directories(target + ".sstferry/staging");
  WriteBytes(target + ".sstferry/lock", "");
  std::string said;
  const auto end = [&] {
    REQUIRE_OK(EndLeftCommand(
        target, [&](LogLevel, const std::string& line) { said += line; }));
  };
  end();  // no note yet
  const std::string child = dir / "child";
  REQUIRE(mkfifo(child.c_str(), 0600) == 0);
  // Starts a hook with a child process. The hook checks that its note exists.
  std::atomic<bool> stop = false;
  auto earlier = std::async(std::launch::async, [&] {
    SwapEvent event = Event();
    event.target_dir = target;
    event.stopped = [&] { return stop.load(); };
    Run("grep -q \"^$$ \" " + note + " || exec echo 0 > " + child +
            "; sleep 600 & echo $! > " + child + "; wait", event)
        .PermitUncheckedError();
  });
  const std::shared_ptr<void> at_end(nullptr, [&](void*) { stop = true; });
  const pid_t its_child = std::stoi(BytesOf(child));
  REQUIRE(its_child > 0);
  pollfd ends = {static_cast<int>(syscall(SYS_pidfd_open, its_child, 0)),
                 POLLIN, 0};
  const std::string text = BytesOf(note);
  const std::string name = text.substr(0, text.find('\n'));
  const size_t space = name.find(' ');
  const std::string id = name.substr(0, space);
  REQUIRE(NameOfProcess(std::stoi(id)) == name);
  // While a process waits for the hook, or if none is named, it is not left.
  REQUIRE(text == name + "\n" + NameOfProcess(getpid()) + "\n");
  end();
  WriteBytes(note, name + "\n");
  end();
  // Notes with this process id but another start time, or another boot, are
  // ignored.
  WriteBytes(note, LeftNote(id + " 1" + name.substr(space + 1)));
  end();
  WriteBytes(note, LeftNote(name.substr(0, name.size() - 1) + "x"));
  end();
  WriteBytes(note, "");
  end();
  REQUIRE(said.empty());
  WriteBytes(note, LeftNote(name));
  end();
  REQUIRE(poll(&ends, 1, 60'000) == 1);
  close(ends.fd);
  earlier.get();
  REQUIRE(said.find("process " + id + " (/bin/sh -c grep") !=
          std::string::npos);
  said.clear();
  end();  // the hook has ended
  REQUIRE(said.empty());
}

TEST_CASE("A hook's background processes are not waited for", "[tools][hook]") {
  ScratchDir dir;
  REQUIRE_OK(Run("sleep 600 & echo $! > " + (dir / "pid")));
  const pid_t server = std::stoi(BytesOf(dir / "pid"));
  REQUIRE(kill(server, 0) == 0);
  REQUIRE(kill(server, SIGKILL) == 0);
}

// Result of a job and of its --on-success or --on-failure command.
struct EndedJob {
  int code = -1;
  std::string err;
  std::string seen;  // "pull 0"; empty: no command ran
  nlohmann::json summary;
};

// Adds --on-success and --on-failure commands that save the summary and the
// variables in `dir`.
std::vector<std::string> WithEnds(std::vector<std::string> words,
                                  const std::string& dir) {
  for (const char* const end : {"success", "failure"}) {
    words.push_back(std::string("--on-") + end);
    words.push_back("cp \"$SSTFERRY_SUMMARY\" " + dir + "/summary && echo " +
                    end + " $SSTFERRY_COMMAND $SSTFERRY_EXIT_CODE $(id -u) > " +
                    dir + "/seen");
  }
  return Sstferry(words);
}

EndedJob Ended(Process* process, const std::string& dir) {
  EndedJob job;
  job.code = process->Wait();
  job.err = process->err();
  if (std::filesystem::exists(dir + "/seen")) {
    job.seen = BytesOf(dir + "/seen");
    job.summary = nlohmann::json::parse(BytesOf(dir + "/summary"));
  }
  std::filesystem::remove(dir + "/seen");
  return job;
}

EndedJob RunWithEnds(const std::vector<std::string>& words,
                     const std::string& dir) {
  Process process(WithEnds(words, dir));
  return Ended(&process, dir);
}

TEST_CASE("The end command of a job gets its result and exit code",
          "[tools][hook]") {
  const ScratchDir dir;
  const std::string own = " " + std::to_string(geteuid()) + "\n";
  MakeSampleDatabase(dir / "db", {.entries = 50, .files = 2});
  EndedJob job = RunWithEnds({"pull", dir / "db", dir / "copy"}, dir.path());
  INFO(job.err);
  REQUIRE(job.code == 0);
  REQUIRE(job.seen == "success pull 0" + own);
  REQUIRE(job.summary["command"] == "pull");
  REQUIRE(job.summary["status"] == "OK");
  REQUIRE(job.summary["files_cloned"] > 0);

  job = RunWithEnds({"refresh", dir / "db", dir / "copy", "--json"},
                    dir.path());
  REQUIRE(job.seen == "success refresh 0" + own);
  REQUIRE(job.summary["mode"] == "refresh");

  MakeSampleDatabase(dir / "other", {.entries = 51, .files = 2});
  job = RunWithEnds({"verify", dir / "other", dir / "copy"}, dir.path());
  REQUIRE(job.code == 3);
  REQUIRE(job.seen == "failure verify 3" + own);
  REQUIRE(job.summary["status"] == "DIFFERENT");
  REQUIRE(job.summary["exit_code"] == 3);

  job = RunWithEnds({"pull", dir / "none", dir / "copy2"}, dir.path());
  REQUIRE(job.code == 1);
  REQUIRE(job.seen == "failure pull 1" + own);
  REQUIRE(job.summary["error"]["code"] == "SOURCE_ERROR");

  // Wrong usage runs no end command.
  job = RunWithEnds({"pull", dir / "none", "--lanes", "0"}, dir.path());
  REQUIRE(job.code == 2);
  REQUIRE(job.seen.empty());

  // The option also works in a config file, here for archive actions.
  std::filesystem::create_directory(dir / "archive");
  OutputOf({"archive", "init", dir / "archive"});
  for (const auto& [words, seen] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"push", dir / "db", dir / "archive"}, "archive push"},
           {{"check", dir / "archive", "--drill", dir / "drill"},
            "archive check"},
           {{"prune", dir / "archive"}, "archive prune"},
           {{"repair", dir / "archive"}, "archive repair"}}) {
    WriteBytes(dir / "config.toml",
               "on-success = 'cp $SSTFERRY_SUMMARY " + (dir / "summary") +
                   "; echo $SSTFERRY_COMMAND >" + (dir / "seen") + "'\n");
    std::vector<std::string> all = {"archive"};
    all.insert(all.end(), words.begin(), words.end());
    all.insert(all.end(), {"--config", dir / "config.toml"});
    Process process(Sstferry(all));
    job = Ended(&process, dir.path());
    INFO(job.err);
    REQUIRE(job.code == 0);
    REQUIRE(job.seen == seen + "\n");
    REQUIRE(job.summary["action"] == seen.substr(8));
  }
  OutputOf({"archive", "list", dir / "archive", "--on-success", "true"}, 2);
}

TEST_CASE("The end command runs after a stop or a deadline, and the next stop "
          "ends it",
          "[tools][hook]") {
  const ScratchDir dir;
  const std::vector<std::string> waits = {"pull", "sst://127.0.0.1:1/x",
                                          dir / "copy"};
  Process pull(WithEnds(waits, dir.path()));
  REQUIRE(pull.WaitForErr("trying again"));
  pull.Signal(SIGTERM);
  EndedJob job = Ended(&pull, dir.path());
  INFO(job.err);
  REQUIRE(job.code == 4);
  REQUIRE(job.seen.starts_with("failure pull 4 "));
  REQUIRE(job.summary["status"] == "CANCELLED");

  std::vector<std::string> late = waits;
  late.insert(late.end(), {"--deadline", "300ms"});
  job = RunWithEnds(late, dir.path());
  REQUIRE(job.seen.starts_with("failure pull 4 "));
  REQUIRE(job.summary["status"] == "DEADLINE");

  // A follower that is stopped by SIGTERM has succeeded.
  MakeSampleDatabase(dir / "db", {.entries = 50, .files = 2});
  Process follow(WithEnds({"follow", dir / "db", dir / "standby"}, dir.path()));
  REQUIRE(follow.WaitForErr("following "));
  follow.Signal(SIGTERM);
  job = Ended(&follow, dir.path());
  INFO(job.err);
  REQUIRE(job.code == 0);
  REQUIRE(job.seen.starts_with("success follow 0 "));
  REQUIRE(job.summary["command"] == "follow");

  // An end command that hangs is ended by the next signal.
  Process hangs(Sstferry({"pull", dir / "db", dir / "copy2", "--on-success",
                          "echo hangs >&2; sleep 600"}));
  REQUIRE(hangs.WaitForErr("\nhangs\n"));
  hangs.Signal(SIGTERM);
  REQUIRE(hangs.Wait() == 1);
  REQUIRE(hangs.err().find("was ended: sstferry was stopped") !=
          std::string::npos);
}

TEST_CASE("A failed end command only changes the exit code of a success, "
          "and leaves no file",
          "[tools][hook]") {
  const ScratchDir dir;
  MakeSampleDatabase(dir / "db", {.entries = 50, .files = 2});
  std::filesystem::create_directory(dir / "tmp");
  const auto run = [&](const std::string& target, const std::string& end) {
    Process pull(Sstferry({"pull", dir / "db", target, end, "exit 7"}),
                 {{"TMPDIR", dir / "tmp"}});
    const int code = pull.Wait();
    INFO(pull.err());
    REQUIRE(pull.err().find(end + " \"exit 7\" ended with code 7") !=
            std::string::npos);
    REQUIRE(std::filesystem::is_empty(dir / "tmp"));
    return code;
  };
  REQUIRE(run(dir / "copy", "--on-success") == 1);
  REQUIRE(std::filesystem::exists(dir / "copy/CURRENT"));
  REQUIRE(run(dir / "copy", "--on-failure") == 1);  // the target is not empty
  Process busy(Sstferry({"pull", "sst://127.0.0.1:1/x", dir / "copy2",
                         "--deadline", "100ms", "--on-failure", "exit 7"}));
  REQUIRE(busy.Wait() == 4);
}

TEST_CASE("The end command of root's pull for another account runs as root",
          "[tools][hook]") {
  if (geteuid() != 0) {
    WARN("not run: it needs root, to act as two accounts");
    return;
  }
  constexpr uid_t kOther = 65534;
  const ScratchDir dir;
  chmod(dir.path().c_str(), 0755);
  MakeSampleDatabase(dir / "db", {.entries = 50, .files = 2});
  const std::string place = dir / "app";
  std::filesystem::create_directory(place);
  REQUIRE(chown(place.c_str(), kOther, kOther) == 0);
  REQUIRE(chown((dir / "db").c_str(), kOther, kOther) == 0);
  for (const std::string& name : NamesOf(dir / "db")) {
    REQUIRE(chown((dir / "db/" + name).c_str(), kOther, kOther) == 0);
  }
  std::filesystem::create_directory(dir / "roots");
  REQUIRE(chmod((dir / "roots").c_str(), 0700) == 0);
  EndedJob job = RunWithEnds({"pull", dir / "db", place + "/copy",
                              "--snapshot-dir", place},
                             dir / "roots");
  INFO(job.err);
  REQUIRE(job.code == 0);
  REQUIRE(job.seen == "success pull 0 0\n");
  REQUIRE(job.summary["status"] == "OK");
  job = RunWithEnds({"pull", dir / "none", place + "/copy2"}, dir / "roots");
  REQUIRE(job.code == 1);
  REQUIRE(job.seen == "failure pull 1 0\n");
  REQUIRE(job.summary["error"]["code"] == "SOURCE_ERROR");
}

}  // namespace
}  // namespace sstferry::hook_test
