// Tests applications that use SingleDelete. No target is refreshed in place
// then: if a refresh put a key a second time, a SingleDelete would remove only
// the newer value and the older one would show again.
#include "tests/support/catch.h"
#include "tests/support/refreshed.h"

namespace sstferry::test::refresh_single_delete_test {
namespace {

constexpr uint64_t kKeys = 1000;

rocksdb::DBOptions KeepingWal() {
  rocksdb::DBOptions options;
  options.avoid_flush_during_recovery = true;
  options.avoid_flush_during_shutdown = true;
  return options;
}

// A source, and a target that is equal to it.
struct Pair {
  ScratchDir dir;
  std::string source = dir / "source";
  std::string target = dir / "target";
  Pair() {
    {
      OpenDb db(source, OneFamily(Quiet()));
      for (uint64_t i = 0; i < kKeys; ++i) {
        db.Put(NumberedKey(i), RandomBytes(100, i));
      }
      db.Flush();
      db.Compact();
    }
    REQUIRE_OK(Refresh(source, target).status);
  }
  void RequireRefused(const PullOptions& options, const std::string& why) {
    const std::string before = Fingerprint(target);
    const Ferried refused = Refresh(source, target, options);
    INFO(refused.message());
    REQUIRE(refused.state() == EndState::kRefused);
    REQUIRE(refused.message().find("SingleDelete") != std::string::npos);
    REQUIRE(refused.message().find(why) != std::string::npos);
    REQUIRE(refused.message().find("swap") != std::string::npos);
    REQUIRE(Fingerprint(target) == before);
  }
};

void DeleteOnce(const std::string& dir, bool in_wal) {
  OpenDb db(dir, OneFamily(Quiet()), KeepingWal());
  REQUIRE_OK(db->SingleDelete({}, NumberedKey(5)));
  if (!in_wal) {
    db.Flush();
  }
}

TEST_CASE("A source that uses SingleDelete is not refreshed from in place",
          "[transfer][refresh]") {
  const bool in_wal = GENERATE(false, true);
  PullOptions options;
  Pair pair;
  DeleteOnce(pair.source, in_wal);
  pair.RequireRefused(options, in_wal ? "its WALs hold" : ".sst holds");
  options = PullOptions();
  options.mode = PullMode::kSwap;
  options.adopt = true;
  REQUIRE_OK(Refresh(pair.source, pair.target, options).status);
  ExpectSameEntries(pair.source, pair.target);
}

TEST_CASE("A target whose application uses SingleDelete is not refreshed in "
          "place",
          "[transfer][refresh]") {
  const bool in_wal = GENERATE(false, true);
  Pair pair;
  DeleteOnce(pair.target, in_wal);
  pair.RequireRefused({}, in_wal ? "a WAL holds" : ".sst holds");
  PullOptions options;
  options.adopt = true;
  pair.RequireRefused(options, "of the target");
}

TEST_CASE("An open target whose application uses SingleDelete is not refreshed "
          "in place",
          "[transfer][refresh]") {
  Pair pair;
  OpenDb target(pair.target, OneFamily(Quiet()));
  REQUIRE_OK(target->SingleDelete({}, NumberedKey(5)));
  const Ferried refused = RefreshOpen(pair.source, &target);
  INFO(refused.message());
  REQUIRE(refused.state() == EndState::kRefused);
  REQUIRE(refused.message().find("holds a SingleDelete") != std::string::npos);
}

TEST_CASE("A target whose application uses other deletions is refreshed",
          "[transfer][refresh]") {
  Pair pair;
  {
    OpenDb target(pair.target, OneFamily(Quiet()));
    target.Delete(NumberedKey(7));
    target.Flush();
  }
  PassWrites(pair.source);
  REQUIRE_OK(Refresh(pair.source, pair.target).status);
  ExpectSameEntries(pair.source, pair.target);
  const Ferried again = Refresh(pair.source, pair.target);
  REQUIRE_OK(again.status);
  REQUIRE(again.summary.parts_unchanged == again.summary.parts);
}

}  // namespace
}  // namespace sstferry::test::refresh_single_delete_test
