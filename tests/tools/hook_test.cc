// The commands around an exchange: what they see, and how they end.
#include "tools/sstferry/hook.h"

#include <fcntl.h>
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

#include "format/end_state.h"
#include "pipeline/base/file_lock.h"
#include "tests/support/catch.h"
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

TEST_CASE("A command sees what is exchanged, and a shell of its own",
          "[tools][hook]") {
  ScratchDir dir;
  const std::string out = dir / "out";
  SwapEvent event = Event();
  event.exchanged = true;
  setenv("SSTFERRY_EXCHANGED", "maybe", 1);
  // Signals that this process holds are not held there.
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

TEST_CASE("A command that fails is named with its code", "[tools][hook]") {
  REQUIRE_OK(Run("true"));
  RequireEnds(Run("exit 7"), EndState::kRefused,
              "\"exit 7\" ended with code 7");
  RequireEnds(Run("/no/such/command"), EndState::kRefused, "code 127");
  RequireEnds(Run("kill -9 $$"), EndState::kRefused, "ended by signal 9");
}

TEST_CASE("A command is ended with all it started when the pull is stopped",
          "[tools][hook]") {
  ScratchDir dir;
  SwapEvent event = Event();
  // Once it has started, and with it a child of its own.
  event.stopped = [&] { return std::filesystem::exists(dir / "child"); };
  RequireEnds(Run("(echo > " + (dir / "child") + "; sleep 600); true", event),
              EndState::kCancelled, "the pull was stopped");
}

TEST_CASE("A command is ended when its time is over", "[tools][hook]") {
  RequireEnds(Run("sleep 600", Event(), steady_clock::now()),
              EndState::kDeadline, "it took too long");
}

TEST_CASE("A process that no hook started is not ended, whatever a note says",
          "[tools][hook]") {
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
  SECTION("one of this user") {
    WriteBytes(note, NameOfProcess(child) + "\n");
    chmod(note.c_str(), 0600);
  }
  SECTION("one by a link") {
    WriteBytes(dir / "elsewhere", NameOfProcess(child) + "\n");
    std::filesystem::create_symlink(dir / "elsewhere", note);
  }
  SECTION("one that others may write") {
    WriteBytes(note, NameOfProcess(child) + "\n");
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

TEST_CASE("A command that was left is ended with its group, and no other one",
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
  end();  // there was no command
  const std::string child = dir / "child";
  REQUIRE(mkfifo(child.c_str(), 0600) == 0);
  // It runs, with a child of its own, and its note lies there before that.
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
  const std::string name = BytesOf(note);
  const size_t space = name.find(' ');
  const std::string id = name.substr(0, space);
  REQUIRE(NameOfProcess(std::stoi(id)) + "\n" == name);
  // The same id, but another start, or another boot.
  WriteBytes(note, id + " 1" + name.substr(space + 1));
  end();
  WriteBytes(note, name.substr(0, name.size() - 2) + "x\n");
  end();
  WriteBytes(note, "");
  end();
  WriteBytes(note, name);
  {
    // Its pull still runs.
    const int lock = open((target + ".sstferry/lock").c_str(), O_RDONLY);
    REQUIRE(LockFile(lock));
    end();
    close(lock);
  }
  REQUIRE(said.empty());
  end();
  REQUIRE(poll(&ends, 1, 10'000) == 1);
  close(ends.fd);
  earlier.get();
  REQUIRE(said.find("process " + id + " (/bin/sh -c grep") !=
          std::string::npos);
  said.clear();
  end();  // it is gone
  REQUIRE(said.empty());
}

TEST_CASE("What a command leaves in the background is not waited for",
          "[tools][hook]") {
  ScratchDir dir;
  REQUIRE_OK(Run("sleep 600 & echo $! > " + (dir / "pid")));
  const pid_t server = std::stoi(BytesOf(dir / "pid"));
  REQUIRE(kill(server, 0) == 0);
  REQUIRE(kill(server, SIGKILL) == 0);
}

}  // namespace
}  // namespace sstferry::hook_test
