// Databases that are pinned together, and the snapshots made of them later.
#include "pipeline/serve/pin_sets.h"

#include <filesystem>

#include "pipeline/snapshot/snapshot.h"
#include "tests/support/catch.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/test_db.h"

namespace sstferry::pin_sets_test {

namespace {

const auto kAlive = [](uint64_t) { return true; };

PinWish WishFor(const std::string& name, const std::string& directory) {
  PinWish wish;
  wish.database.name = name;
  wish.database.directory = directory;
  return wish;
}

size_t PrivateDirsIn(const std::string& parent) {
  size_t count = 0;
  for (const std::string& name : NamesOf(parent)) {
    count += name.find(".sstferry-snapshot-") != std::string::npos ? 1 : 0;
  }
  return count;
}

}  // namespace

TEST_CASE("A pinned database does not change, for chunks and for a clone",
          "[source][pins]") {
  const ScratchDir dir;
  rocksdb::Options options;
  options.create_if_missing = true;
  test::OpenDb db(options, dir / "db");
  db.Put("flushed", "1");
  db.Flush();
  db.Put("in the WAL", "2");
  const uint64_t sequence = db->GetLatestSequenceNumber();
  const ServeOptions serve;
  PinSets pins(&serve);
  PinReply reply;
  pins.Pin({WishFor("db", dir / "db"), WishFor("gone", dir / "gone")}, nullptr,
           kAlive, &reply);
  REQUIRE(reply.databases.size() == 2);
  REQUIRE(reply.databases[0].problem.empty());
  REQUIRE(reply.databases[0].begin_micros <= reply.databases[0].end_micros);
  REQUIRE_FALSE(reply.databases[1].problem.empty());
  REQUIRE(pins.Find(reply.id, "gone", nullptr) == nullptr);

  db.Put("later", "3");
  db.Flush();
  db.Compact();
  const auto pinned = pins.Find(reply.id, "db", nullptr);
  REQUIRE(pinned != nullptr);
  // Each kind of snapshot is made twice: no snapshot changes the pinned files.
  for (const bool as_files : {false, true, true, false}) {
    SnapshotOptions how;
    how.database_dir = dir / "db";
    how.as_files = as_files;
    std::unique_ptr<Snapshot> snapshot;
    REQUIRE_OK(Snapshot::OfPinned(how, *pinned, &snapshot));
    REQUIRE(snapshot->sequence() == sequence);
    if (!as_files) {
      std::string value;
      REQUIRE_OK(snapshot->db()->Get({}, "in the WAL", &value));
      REQUIRE(snapshot->db()->Get({}, "later", &value).IsNotFound());
    }
  }
}

TEST_CASE(
    "Only the peer that pinned a database finds it, until it ends the pin",
    "[source][pins]") {
  const ScratchDir dir;
  MakeSampleDatabase(dir / "a");
  MakeSampleDatabase(dir / "b");
  const ServeOptions serve;
  PinSets pins(&serve);
  const PeerIdentity owner = {"CN=db2", {"db2"}};
  const PeerIdentity other = {"CN=db3", {"db3"}};
  PinReply reply;
  pins.Pin({WishFor("a", dir / "a"), WishFor("b", dir / "b")}, &owner, kAlive,
           &reply);
  REQUIRE(PrivateDirsIn(dir.path()) == 2);
  REQUIRE(pins.Find(reply.id, "a", &owner) != nullptr);
  REQUIRE(pins.Find(reply.id, "a", &other) == nullptr);
  REQUIRE(pins.Find(reply.id, "a", nullptr) == nullptr);
  pins.End({reply.id, ""}, &other);
  REQUIRE(pins.Find(reply.id, "a", &owner) != nullptr);
  pins.End({reply.id, "a"}, &owner);
  REQUIRE(pins.Find(reply.id, "a", &owner) == nullptr);
  REQUIRE(PrivateDirsIn(dir.path()) == 1);
  pins.End({reply.id, ""}, &owner);
  REQUIRE(PrivateDirsIn(dir.path()) == 0);
}

TEST_CASE("A peer that disconnects while databases are pinned leaves nothing",
          "[source][pins]") {
  const ScratchDir dir;
  MakeSampleDatabase(dir / "a");
  const ServeOptions serve;
  PinSets pins(&serve);
  PinReply reply;
  PinWish denied = WishFor("a", dir / "a");
  denied.problem = "it is not for you";
  pins.Pin({denied}, nullptr, [](uint64_t) { return false; }, &reply);
  REQUIRE(reply.databases[0].problem.find("not for you") !=
          std::string::npos);
  REQUIRE(pins.Find(reply.id, "a", nullptr) == nullptr);
  REQUIRE(PrivateDirsIn(dir.path()) == 0);
}

}  // namespace sstferry::pin_sets_test
