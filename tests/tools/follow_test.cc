// sstferry follow, promote and view, as an operator sees them: real processes
// beside an application that writes.
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/standby_world.h"

namespace sstferry::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Runs `sstferry WORDS --json` and returns its object.
json Ran(std::vector<std::string> words, int code = 0) {
  words.push_back("--json");
  Process process(Sstferry(words));
  const int ended = process.Wait();
  INFO(process.out() << process.err());
  REQUIRE(ended == code);
  return json::parse(process.out());
}

// Waits until the standby has all that the source has now.
json AwaitAll(const StandbyWorld& world, const std::string& dir,
              uint64_t sequence) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  for (;;) {
    json status;
    if (fs::exists(dir + "/sstferry.follow")) {
      status = Ran({"status", dir})["standby"];
      if (status["durable_sequence"] >= sequence) {
        return status;
      }
    }
    INFO(status.dump());
    REQUIRE(std::chrono::steady_clock::now() < end);
  }
}

TEST_CASE("A source is followed, viewed and promoted", "[tools][follow]") {
  StandbyWorld world;
  world.Write(50);
  world.source()->Flush();
  world.Write(50);
  const std::string dir = world.dir();
  Process follower(Sstferry({"follow", world.source_dir(), dir, "--durable",
                             "20ms"}));
  AwaitAll(world, dir, world.sequence());
  for (int i = 0; i < 5; ++i) {
    world.Write(20);
    world.source()->Flush();
  }
  const json status = AwaitAll(world, dir, world.sequence());
  REQUIRE(status["followed"] == true);
  REQUIRE(status["promoted"] == false);
  REQUIRE(status["cuts"]["first"] == 1);
  REQUIRE(Ran({"promote", dir}, 5)["status"] == "BUSY");
  REQUIRE(Ran({"pull", world.source_dir(), dir}, 1)["status"] == "REFUSED");
  const std::string view = world.root() + "/view";
  Ran({"view", dir, view});
  REQUIRE(world.RequirePrefix(view) == world.sequence());
  // A barrier: the new family is in the next cut.
  world.source()->Create({"third", Quiet()});
  world.source()->Put("k", "v", "third");
  world.Write(20);
  const uint64_t sequence = world.sequence();
  REQUIRE(AwaitAll(world, dir, sequence)["cuts"]["barrier"] >= 1);
  world.CloseSource();
  const std::string marks = world.root() + "/hooks";
  const json promoted =
      Ran({"promote", dir, "--after-source-closed", "--wait", "60s", "--before",
           "kill -TERM " + std::to_string(follower.pid()) +
               "; echo before >> " + marks,
           "--after", "echo after $SSTFERRY_EXCHANGED >> " + marks});
  REQUIRE(promoted["standby"]["promoted"] == true);
  REQUIRE(promoted["standby"]["sequence"] == sequence);
  std::ifstream hooks(marks);
  REQUIRE(BytesIn(hooks) ==
          "before\nafter yes\n");
  REQUIRE(follower.Wait() == 0);
  REQUIRE_FALSE(fs::exists(dir + ".sstferry"));
  OpenDb db(dir, {{"default", Quiet()}, {"other", Quiet()},
                  {"third", Quiet()}});
  REQUIRE(db->GetLatestSequenceNumber() == sequence);
  std::string value;
  REQUIRE_OK(db->Get(rocksdb::ReadOptions(), db.cf("third"), "k", &value));
  REQUIRE(value == "v");
}

TEST_CASE("A follower that was killed goes on where it was",
          "[tools][follow]") {
  StandbyWorld world;
  world.Write(50);
  const std::string dir = world.dir();
  uint64_t firsts = 0;
  for (int i = 0; i < 3; ++i) {
    Process follower(Sstferry({"follow", world.source_dir(), dir}));
    world.Write(20);
    const json status = AwaitAll(world, dir, world.sequence());
    firsts = status["cuts"]["first"];
    follower.Signal(SIGKILL);
    follower.Wait();
  }
  REQUIRE(firsts == 1);
  REQUIRE(Ran({"promote", dir})["standby"]["sequence"] == world.sequence());
  REQUIRE(world.RequirePrefix(dir) == world.sequence());
}

}  // namespace
}  // namespace sstferry::test
