// The followers of a source: what it holds for them, and how long.
#include "pipeline/follow/source_followers.h"

#include <chrono>

#include "tests/support/catch.h"
#include "tests/support/standby_world.h"

namespace sstferry::test::source_followers_test {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// A cut of a large database takes hours, and its follower asks for nothing
// meanwhile.
TEST_CASE("What comes behind a cut is held for as long as that takes",
          "[follow]") {
  constexpr milliseconds kLinger{300};
  StandbyWorld world;
  world.Write(50);
  SourceFollowers followers(1'000'000'000, kLinger);
  ServedDatabase database;
  database.name = "db";
  database.directory = world.source_dir();
  FollowRequest request;
  request.database = "db";
  request.wait_millis = kMaxFollowWaitMillis;
  uint64_t bytes = 0;
  FollowEnd end;
  const auto ask = [&] {
    bytes = 0;
    REQUIRE_OK(followers.Answer(
        &world, database, request,
        [&](const FollowBytes& some) {
          bytes += some.bytes.size();
          return rocksdb::Status::OK();
        },
        &end));
  };
  ask();
  REQUIRE(end.cut == CutReason::kFirst);
  REQUIRE_OK(world.Open());
  REQUIRE_OK(world.Cut());
  const auto until = Clock::now() + 3 * kLinger;
  while (Clock::now() < until && !followers.state().empty()) {
  }
  world.Write(10);
  world.source()->Flush();  // these records are in no WAL that it has
  world.Write(10);
  request.position = world.standby()->position();
  ask();
  REQUIRE(end.cut == CutReason::kNone);
  REQUIRE(bytes > 0);
  // It is held for those who come back, and not for ever.
  followers.Leave(&world);
  const auto limit = Clock::now() + std::chrono::minutes(1);
  while (!followers.state().empty()) {
    REQUIRE(Clock::now() < limit);
  }
}

}  // namespace
}  // namespace sstferry::test::source_followers_test
