// Wall clocks that jump while sstferry runs: results stay correct, and source
// and target wait no longer than with a steady clock.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/restored.h"
#include "tests/support/sample_database.h"
#include "tests/support/sanitizer.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/standby_world.h"

namespace sstferry::test::clock_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int64_t kDay = 86'400;
// Offsets in seconds that the clock takes one after another.
constexpr int64_t kJumps[] = {kDay, 0, -kDay, 3600, 0};

// Wall clock of the processes that get its environment. Use from one thread.
class JumpingClock {
 public:
  JumpingClock() : file_(open(path().c_str(), O_CREAT | O_RDWR, 0644)) {
    REQUIRE(file_ >= 0);
    Set(0);
  }
  ~JumpingClock() { close(file_); }
  void Set(int64_t seconds) {
    REQUIRE(pwrite(file_, &seconds, sizeof(seconds), 0) == sizeof(seconds));
  }
  std::map<std::string, std::string> environment() const {
    const std::string program = fs::read_symlink("/proc/self/exe");
    return {{"LD_PRELOAD",
             fs::path(program).parent_path() / "libjumping_clock.so"},
            {"SSTFERRY_TEST_CLOCK", path()}};
  }

 private:
  std::string path() const { return dir_ / "clock"; }
  const ScratchDir dir_;
  const int file_;
};

json Ran(std::vector<std::string> words, int code = 0) {
  words.push_back("--json");
  return json::parse(OutputOf(words, code));
}

std::chrono::steady_clock::time_point Limit() {
  return std::chrono::steady_clock::now() + std::chrono::minutes(2);
}

TEST_CASE("JumpingClock sets the clock of a process", "[tools][clock]") {
  if (kSanitized) return;  // its runtime must be preloaded first
  JumpingClock clock;
  clock.Set(-kDay);
  Process date({"/bin/date", "+%s"}, clock.environment());
  REQUIRE(date.Wait() == 0);
  REQUIRE(std::abs(std::stoll(date.out()) + kDay - time(nullptr)) < 600);
}

TEST_CASE("A pull is complete although the clocks of both sides jump",
          "[tools][clock]") {
  if (kSanitized) return;
  const std::string method = GENERATE("clone", "ingest");
  const ScratchDir dir;
  SampleShape shape;
  shape.entries = 5000;
  MakeSampleDatabase(dir / "source", shape);
  JumpingClock source_clock;
  JumpingClock target_clock;
  const std::string socket = dir / "socket";
  Process serve(Sstferry({"serve", "db=" + (dir / "source"), "--listen",
                          "unix:" + socket}),
                source_clock.environment());
  REQUIRE(serve.WaitForOut("listening"));
  // Slow, so that the clocks jump while it runs.
  Process pull(Sstferry({"pull", "unix:" + socket + ":db", dir / "target",
                         "--method", method, "--max-rate", "500KB", "--timeout",
                         "60s"}),
               target_clock.environment());
  for (const int64_t jump : kJumps) {
    REQUIRE(pull.Wait(std::chrono::milliseconds(300)) == -1);
    source_clock.Set(-jump);
    target_clock.Set(jump);
  }
  const int code = pull.Wait();
  INFO(pull.err());
  REQUIRE(code == 0);
  REQUIRE(sstferry::EntriesOf(dir / "target") ==
          sstferry::EntriesOf(dir / "source"));
  REQUIRE(OutputOf({"verify", dir / "source", dir / "target"}) != "");
}

TEST_CASE("status and metrics say that the source's clock was ahead",
          "[tools][clock][status]") {
  if (kSanitized) return;
  const ScratchDir dir;
  SampleShape shape;
  shape.entries = 50;
  MakeSampleDatabase(dir / "source", shape);
  JumpingClock clock;
  clock.Set(kDay);
  const std::string socket = dir / "socket";
  Process serve(Sstferry({"serve", "db=" + (dir / "source"), "--listen",
                          "unix:" + socket}),
                clock.environment());
  REQUIRE(serve.WaitForOut("listening"));
  OutputOf({"pull", "unix:" + socket + ":db", dir / "target",
            "--metrics-file", dir / "m.prom"});
  const json state = Ran({"status", dir / "target"})["target"]["complete"];
  INFO(state.dump(2));
  REQUIRE(state["source_ahead_seconds"] > kDay - 3600);
  REQUIRE(state["age_seconds"] < 3600);
  const std::string text = OutputOf({"status", dir / "target"});
  INFO(text);
  REQUIRE(text.find("; the clock of the source was at least ") !=
          std::string::npos);
  REQUIRE(text.find(" ahead of this machine's, so the age counts from the end "
                    "of the transfer\n") != std::string::npos);
  std::ifstream file(dir / "m.prom");
  const std::string name = "sstferry_replica_snapshot_timestamp_seconds{";
  std::string line;
  while (std::getline(file, line) && !line.starts_with(name)) {
  }
  INFO(line);
  REQUIRE(std::stod(line.substr(line.rfind(' '))) <=
          static_cast<double>(time(nullptr)));
}

TEST_CASE("The age of a replica is unknown if its time is ahead of the clock",
          "[tools][clock][status]") {
  if (kSanitized) return;
  const ScratchDir dir;
  SampleShape shape;
  shape.entries = 50;
  MakeSampleDatabase(dir / "source", shape);
  JumpingClock clock;
  clock.Set(kDay);
  Process pull(Sstferry({"pull", dir / "source", dir / "target"}),
               clock.environment());
  REQUIRE(pull.Wait() == 0);
  const json state = Ran({"status", dir / "target"})["target"]["complete"];
  INFO(state.dump(2));
  REQUIRE(state["age_seconds"].is_null());
  const std::string text = OutputOf({"status", dir / "target"});
  INFO(text);
  REQUIRE(text.find("complete, of unknown age, ") != std::string::npos);
}

TEST_CASE("A standby keeps following although the clocks of both sides jump",
          "[tools][clock][follow]") {
  if (kSanitized) return;
  StandbyWorld world;
  world.Write(50);
  JumpingClock source_clock;
  JumpingClock target_clock;
  const std::string socket = world.root() + "/socket";
  Process serve(Sstferry({"serve", "db=" + world.source_dir(), "--listen",
                          "unix:" + socket}),
                source_clock.environment());
  REQUIRE(serve.WaitForOut("listening"));
  Process follower(Sstferry({"follow", "unix:" + socket + ":db", world.dir(),
                             "--durable", "20ms", "--cut-every", "1s"}),
                   target_clock.environment());
  const auto await = [&](uint64_t sequence) {
    const auto end = Limit();
    for (json found;;) {
      if (fs::exists(world.dir() + "/sstferry.follow")) {
        found = Ran({"status", world.dir()})["standby"];
        if (found["durable_sequence"] >= sequence) return;
      }
      INFO(found.dump() << follower.err());
      REQUIRE(std::chrono::steady_clock::now() < end);
    }
  };
  await(world.sequence());
  for (const int64_t jump : kJumps) {
    target_clock.Set(jump);
    world.Write(10);
    await(world.sequence());
    source_clock.Set(-jump);
    world.Write(10);
    world.source()->Flush();
    await(world.sequence());
  }
  const uint64_t sequence = world.sequence();
  world.CloseSource();
  Ran({"promote", world.dir(), "--after-source-closed", "--wait", "60s",
       "--before", "kill -TERM " + std::to_string(follower.pid())});
  REQUIRE(world.RequirePrefix(world.dir()) == sequence);
}

TEST_CASE("A log restores each sequence although its follower's clock jumped",
          "[tools][clock][follow]") {
  if (kSanitized) return;
  StandbyWorld world;
  world.Write(50);
  JumpingClock clock;
  const std::string archive = world.root() + "/archive";
  InitArchive(archive);
  Process follower(Sstferry({"follow", world.source_dir(), archive, "--segment",
                             "100ms"}),
                   clock.environment());
  const std::string target = world.root() + "/restored";
  // Waits until the log can restore a sequence, and checks the restored
  // entries.
  const auto await = [&](uint64_t sequence) {
    const auto end = Limit();
    for (;;) {
      fs::remove_all(target);
      Process pull(Sstferry({"pull",
                             archive + "@sequence:" + std::to_string(sequence),
                             target}));
      if (pull.Wait() == 0) break;
      INFO(pull.err() << follower.err());
      REQUIRE(std::chrono::steady_clock::now() < end);
    }
    REQUIRE(world.RequirePrefix(target) == sequence);
  };
  std::vector<uint64_t> sequences;
  await(world.sequence());
  for (const int64_t jump : kJumps) {
    clock.Set(jump);
    world.Write(10);
    sequences.push_back(world.sequence());
    await(sequences.back());
  }
  follower.Signal(SIGTERM);
  REQUIRE(follower.Wait() == 0);
  for (const uint64_t sequence : sequences) {
    await(sequence);
  }
}

}  // namespace
}  // namespace sstferry::test::clock_test
