// Restores, drills and prunes of a bucket, killed at each request that they
// send: real processes against a fake S3 server inside this test.
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

// S3 server that kills its client process at request number `at`: before the
// request takes effect, or after that and before the answer.
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

  // Runs the command and kills it at request `at`. Returns false if the command
  // succeeded before that request.
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
    // Only push, check and pull have the option --lanes.
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
  FakeS3 server;  // last: its callbacks use the members above
};

constexpr char kPlace[] = "s3://b/orders";

// Pushes three sets; the first and the last have no table in common.
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

TEST_CASE("A restore killed at any request leaves no target directory, "
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

TEST_CASE("A drill killed at any request leaves nothing, and the next succeeds",
          "[tools][archive]") {
  const ScratchDir dir;
  KillingServer world;
  PushThreeNights(&world, dir);
  const std::vector<std::string> drill = {"archive", "check", kPlace, "--drill",
                                          dir / "drill"};
  // The check's requests come before the restore's. Kills at every third one.
  uint64_t at = 0;
  while (world.RunKilled(drill, at, false)) {
    REQUIRE_FALSE(fs::exists(dir / "drill"));
    at += 3;
  }
  REQUIRE(at > 12);
  REQUIRE(world.Run(drill)["drill"]["opened"] == true);
  REQUIRE_FALSE(fs::exists(dir / "drill.sstferry"));
}

TEST_CASE("A prune killed at any request leaves whole sets, and later prunes "
          "finish its work",
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
    // Odd requests take effect before the kill, even ones do not.
    was_killed = world.RunKilled(prune, at, at % 2 == 1);
    // Each set that is still listed is whole.
    const json left = world.Run({"archive", "check", kPlace});
    REQUIRE(left["problems"].empty());
    REQUIRE_FALSE(left["sets"].empty());
    // The first prune may find leftovers too young to remove; the second one,
    // three days later, removes them.
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
