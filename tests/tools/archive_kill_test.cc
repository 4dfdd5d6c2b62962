// Restores, drills and prunes of a bucket, killed at every request that they
// send: real processes and a server of the test's own.
#include <signal.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/fake_s3.h"
#include "tests/support/process.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/test_db.h"

namespace sstferry::archive_kill_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const std::map<std::string, std::string> kEnvironment = {
    {"AWS_ACCESS_KEY_ID", "key"}, {"AWS_SECRET_ACCESS_KEY", "secret"}};

// A server that kills a process when it sends its request number `at`: before
// that has its effect, or after it and before the answer.
class KillingServer {
 public:
  KillingServer()
      : server(
            [this](const FakeRequest&) -> std::optional<FakeAnswer> {
              return counted_++ == at_ && !after_ ? Kill() : std::nullopt;
            },
            [this](const FakeRequest&, FakeAnswer* answer) {
              if (after_ && counted_ == at_ + 1) {
                *answer = *Kill();
              }
            }) {}

  // Runs the command and kills it at that request; false: it ended before, and
  // with OK.
  bool RunKilled(const std::vector<std::string>& words, uint64_t at,
                 bool after) {
    counted_ = 0;
    at_ = at;
    after_ = after;
    Process process(Words(words), kEnvironment);
    pid_ = process.pid();
    started_ = true;
    started_.notify_all();
    const int ended = process.Wait();
    at_ = UINT64_MAX;
    started_ = false;
    INFO(process.out() << process.err());
    REQUIRE((ended == 0 || ended == 128 + SIGKILL));
    return ended != 0;
  }
  json Run(const std::vector<std::string>& words) {
    std::vector<std::string> with_json = words;
    with_json.emplace_back("--json");
    Process process(Words(with_json), kEnvironment);
    const int ended = process.Wait();
    INFO(process.out() << process.err());
    REQUIRE(ended == 0);
    return json::parse(process.out());
  }

 private:
  std::optional<FakeAnswer> Kill() {
    started_.wait(false);
    kill(pid_, SIGKILL);
    FakeAnswer none;
    none.close_after = 0;
    return none;
  }
  std::vector<std::string> Words(std::vector<std::string> words) const {
    words.insert(words.end(), {"--endpoint", server.url(), "--lanes", "1"});
    // An option of push, check and pull.
    if (words[0] == "archive" && words[1] != "push" && words[1] != "check") {
      words.resize(words.size() - 2);
    }
    return Sstferry(words);
  }

  std::atomic<uint64_t> counted_{0};
  std::atomic<uint64_t> at_{UINT64_MAX};
  std::atomic<bool> after_{false};
  std::atomic<bool> started_{false};
  std::atomic<pid_t> pid_{0};

 public:
  FakeS3 server;  // ends before what it uses
};

constexpr char kPlace[] = "s3://b/orders";

// Three sets, of which the last one and the first differ in all tables.
void PushThreeNights(KillingServer* world, const ScratchDir& dir) {
  world->Run({"archive", "init", kPlace});
  MakeSampleDatabase(dir / "source");
  world->Run({"archive", "push", dir / "source", kPlace});
  for (int night = 0; night < 2; ++night) {
    world->server.Advance(3600);
    {
      test::OpenDb db(dir / "source", test::OneFamily());
      db.Put("night", std::to_string(night));
      db.Flush();
      db.Compact();
    }
    world->Run({"archive", "push", dir / "source", kPlace});
  }
}

}  // namespace

TEST_CASE("A restore that is killed at any request leaves nothing by its name, "
          "and the next one resumes",
          "[tools][archive]") {
  const ScratchDir dir;
  KillingServer world;
  PushThreeNights(&world, dir);
  const std::map<std::string, std::string> objects = world.server.Objects();
  bool was_killed = true;
  for (uint64_t at = 0; was_killed; ++at) {
    was_killed =
        world.RunKilled({"pull", kPlace, dir / "target"}, at, at % 2 == 1);
    INFO(at);
    REQUIRE(fs::exists(dir / "target") != was_killed);
  }
  REQUIRE(world.server.Objects() == objects);
  REQUIRE(EntriesOf(dir / "target") == EntriesOf(dir / "source"));
  REQUIRE_FALSE(fs::exists(dir / "target.sstferry"));
}

TEST_CASE("A drill that is killed at any request is made up for by the next",
          "[tools][archive]") {
  const ScratchDir dir;
  KillingServer world;
  PushThreeNights(&world, dir);
  const std::vector<std::string> drill = {"archive", "check", kPlace, "--drill",
                                          dir / "drill"};
  // Those of the check come before; each third request of the restore.
  uint64_t at = 0;
  while (world.RunKilled(drill, at, false)) {
    REQUIRE_FALSE(fs::exists(dir / "drill"));
    at += 3;
  }
  REQUIRE(at > 12);
  REQUIRE(world.Run(drill)["drill"]["opened"] == true);
  REQUIRE_FALSE(fs::exists(dir / "drill.sstferry"));
}

TEST_CASE("A prune that is killed at any request leaves whole sets, and the "
          "next one ends",
          "[tools][archive]") {
  const ScratchDir dir;
  const std::vector<std::string> prune = {"archive", "prune", kPlace,
                                          "--keep-last", "1"};
  std::map<std::string, std::string> marked;
  {
    KillingServer world;
    PushThreeNights(&world, dir);
    REQUIRE(world.Run(prune)["marked_sets"] == 2);
    marked = world.server.Objects();
  }
  bool was_killed = true;
  for (uint64_t at = 0; was_killed; ++at) {
    INFO(at);
    KillingServer world;
    for (const auto& [path, bytes] : marked) {
      world.server.Set(path, bytes);
    }
    world.server.Advance(3 * 86400);
    // Before the request has its effect, or after it.
    was_killed = world.RunKilled(prune, at, at % 2 == 1);
    // Each set that counts is whole.
    const json left = world.Run({"archive", "check", kPlace});
    REQUIRE(left["problems"].empty());
    REQUIRE_FALSE(left["sets"].empty());
    // What it left may be too young for the next one, and not for that after.
    for (int night = 0; night < 2; ++night) {
      world.Run(prune);
      world.server.Advance(3 * 86400);
    }
    const json ended = world.Run({"archive", "check", kPlace});
    REQUIRE(ended["sets"].size() == 1);
    REQUIRE(ended["orphans"] == 0);
    if (!was_killed) {
      world.Run({"pull", kPlace, dir / "target"});
      REQUIRE(EntriesOf(dir / "target") == EntriesOf(dir / "source"));
    }
  }
}

}  // namespace sstferry::archive_kill_test
