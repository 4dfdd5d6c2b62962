// The followers of a source: which WALs it keeps for them, and for how long.
#include "pipeline/follow/source_followers.h"

#include <array>
#include <chrono>
#include <filesystem>
#include <string>
#include <system_error>

#include "tests/support/catch.h"
#include "tests/support/standby_world.h"

namespace sstferry::test::source_followers_test {
namespace {

using std::chrono::milliseconds;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Returns true if this process keeps a WAL of `directory` open that RocksDB has
// deleted.
bool HasDeletedWal(const std::string& directory) {
  const std::string begin = fs::canonical(directory).string() + "/";
  for (const auto& open : fs::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string path = fs::read_symlink(open.path(), error).string();
    if (!error && path.starts_with(begin) &&
        path.ends_with(".log (deleted)")) {
      return true;
    }
  }
  return false;
}

// A cut of a large database takes hours. Its follower sends no requests
// meanwhile.
TEST_CASE("Records after a cut are kept for as long as the cut takes",
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
        [&](const WalBytes& some) {
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
  REQUIRE(AwaitThat([&] {
    return Clock::now() >= until || followers.state().empty();
  }));
  world.Write(10);
  world.source()->Flush();  // no WAL of the source has these records now
  world.Write(10);
  request.position = world.standby()->position();
  ask();
  REQUIRE(end.cut == CutReason::kNone);
  REQUIRE(bytes > 0);
  REQUIRE(AwaitThat([&] { return HasDeletedWal(world.source_dir()); }));
  // After the follower has left, the WALs are kept only for some time, although
  // nobody asks for them.
  followers.Leave(&world);
  REQUIRE(AwaitThat([&] { return !HasDeletedWal(world.source_dir()); },
                    std::chrono::seconds(20)));
  REQUIRE(AwaitThat([&] { return followers.state().empty(); }));
}

// Returns the standby's position at the end of the source, and closes the
// source.
FollowPosition EndOf(StandbyWorld* world) {
  world->Write(20);
  REQUIRE_OK(world->Open());
  REQUIRE_OK(world->Cut());
  const FollowPosition position = world->standby()->position();
  world->CloseSource();
  return position;
}

// The reader may know the old database for up to 100 ms longer.
TEST_CASE("After a source is exchanged, followers of the new one need no cut",
          "[follow]") {
  StandbyWorld one;
  StandbyWorld other;
  std::array<FollowPosition, 2> ends = {EndOf(&one), EndOf(&other)};
  SourceFollowers followers(1'000'000'000, std::chrono::minutes(1));
  ServedDatabase database;
  database.name = "db";
  database.directory = one.source_dir();
  FollowRequest request;
  request.database = "db";
  request.wait_millis = kMaxFollowWaitMillis;
  for (int i = 0; i < 6; ++i) {
    request.position = ends[i % 2];
    FollowEnd end;
    do {
      REQUIRE_OK(followers.Answer(
          &one, database, request,
          [](const WalBytes&) { return rocksdb::Status::OK(); }, &end));
      REQUIRE(end.cut == CutReason::kNone);
    } while (end.more_bytes > 0);
    fs::rename(one.source_dir(), one.root() + "/away");
    fs::rename(other.source_dir(), one.source_dir());
    fs::rename(one.root() + "/away", other.source_dir());
  }
}

}  // namespace
}  // namespace sstferry::test::source_followers_test
