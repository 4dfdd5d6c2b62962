// The directories that a refresh may replace: their record names its source,
// and they contain only a database.
#include <filesystem>

#include <nlohmann/json.hpp>

#include "pipeline/base/last_transfer.h"
#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "tests/support/catch.h"
#include "tests/support/replica_world.h"
#include "tests/support/sample_database.h"
#include "tests/support/test_db.h"

namespace sstferry::replica_test {
namespace {

namespace fs = std::filesystem;

// Requires that the pull is refused, and leaves the target and its neighbours
// unchanged.
void RequireRefused(const ReplicaWorld& world, const PullOptions& options,
                    const std::string& sentence) {
  const std::vector<std::string> names = NamesOf(world.target());
  const auto neighbours = NamesOf(world.root());
  const Summary summary = RunPull(options);
  INFO(summary.status.ToString());
  REQUIRE(EndStateOf(summary.status) == EndState::kRefused);
  REQUIRE(MessageOf(summary.status).find(sentence) != std::string::npos);
  REQUIRE(NamesOf(world.target()) == names);
  REQUIRE(world.calls().empty());
  if (neighbours == std::vector<std::string>{"source", "target"}) {
    REQUIRE_FALSE(fs::exists(world.target() + ".sstferry/db/CURRENT"));
  }
}

void Fill(ReplicaWorld* world) {
  REQUIRE_OK(RunPull(world->Options()).status);
  world->Forget();
}

TEST_CASE("A refresh refuses a target whose record names another source",
          "[target][swap]") {
  ReplicaWorld world;
  Fill(&world);
  fs::remove_all(world.source());
  SampleShape shape;
  shape.entries = 50;
  MakeSampleDatabase(world.source(), shape);
  PullOptions options = world.Options();
  RequireRefused(world, options, "was pulled from another source");
  options.adopt = true;
  REQUIRE_OK(RunPull(options).status);
  REQUIRE(EntriesOf(world.target()) == EntriesOf(world.source()));
  options.adopt = false;  // the record names the new source now
  REQUIRE_OK(RunPull(options).status);
  world.RequireNothingLeft();
}

TEST_CASE("A refresh refuses a target without a record", "[target][swap]") {
  ReplicaWorld world;
  SampleShape shape;
  shape.entries = 50;
  MakeSampleDatabase(world.target(), shape);
  PullOptions options = world.Options();
  RequireRefused(world, options, "has no record of the source");
  WriteBytes(world.target() + "/last_transfer.json",
             "{\"transfer_id\": \"a\"}");
  RequireRefused(world, options, "has no record of the source");
  options.adopt = true;
  REQUIRE_OK(RunPull(options).status);
  REQUIRE(EntriesOf(world.target()) == EntriesOf(world.source()));
  world.RequireNothingLeft();
}

TEST_CASE(
    "A refresh refuses a directory that is not a database, even to adopt it",
    "[target][swap]") {
  ReplicaWorld world;
  PullOptions options = world.Options();
  options.adopt = true;
  fs::create_directory(world.target());
  WriteBytes(world.target() + "/thesis.tex", "precious");
  RequireRefused(world, options, "no CURRENT");
  REQUIRE(BytesOf(world.target() + "/thesis.tex") == "precious");
  WriteBytes(world.target() + "/000001.sst", "precious");
  RequireRefused(world, options, "no CURRENT");
  REQUIRE(BytesOf(world.target() + "/000001.sst") == "precious");
}

TEST_CASE("A refresh refuses to replace a database that contains another's "
          "directory",
          "[target][swap]") {
  ReplicaWorld world;
  Fill(&world);
  const std::string stranger = world.target() + "/checkpoints/1";
  fs::create_directories(fs::path(stranger).parent_path());
  WriteBytes(stranger, "theirs");
  RequireRefused(world, world.Options(), "part of a database, and would");
  fs::remove_all(world.target() + "/checkpoints");
  fs::remove(stranger);
  // It is also refused if the directory appears during the refresh.
  world.ChangeSource();
  PullOptions options = world.Options();
  options.before_swap = [&](const SwapEvent&) {
    fs::create_directories(fs::path(stranger).parent_path());
    WriteBytes(stranger, "theirs");
    return rocksdb::Status::OK();
  };
  const Summary summary = RunPull(options);
  REQUIRE(EndStateOf(summary.status) == EndState::kRefused);
  REQUIRE(world.calls() == std::vector<std::string>{"after as it was"});
  REQUIRE(BytesOf(stranger) == "theirs");
}

TEST_CASE("A refresh refuses a database whose WAL is in another directory",
          "[target][swap]") {
  ReplicaWorld world;
  Fill(&world);
  {
    rocksdb::Options options;
    options.wal_dir = world.root() + "/wal";
    std::unique_ptr<rocksdb::DB> db;
    REQUIRE_OK(rocksdb::DB::Open(options, world.target(), IntoDb(&db)));
    REQUIRE_OK(db->Put(rocksdb::WriteOptions(), "local", "1"));
  }
  RequireRefused(world, world.Options(), "write-ahead log in");
  {
    // Opening the database without wal_dir removes it from OPTIONS.
    std::unique_ptr<rocksdb::DB> db;
    REQUIRE_OK(
        rocksdb::DB::Open(rocksdb::Options(), world.target(), IntoDb(&db)));
  }
  REQUIRE_OK(RunPull(world.Options()).status);
}

TEST_CASE("A refresh of a part refuses a target that may have more",
          "[target][swap]") {
  ReplicaWorld world;
  Fill(&world);
  PullOptions part = world.Options();
  part.selection.interval.end = "key5";
  RequireRefused(world, part, "may hold more than");
  part.adopt = true;
  RequireRefused(world, part, "may hold more than");
  fs::remove_all(world.target());
  part.adopt = false;
  REQUIRE_OK(RunPull(part).status);
  REQUIRE_OK(RunPull(part).status);  // the same part again
  world.Forget();
  part.selection.interval.end = "key4";
  RequireRefused(world, part, "may hold more than");
}

// Makes the application's own database: with the family "own", which the source
// does not have.
void MakeOwn(const std::string& dir) {
  SampleShape shape;
  shape.entries = 50;
  MakeSampleDatabase(dir, shape);
  test::OpenDb db(dir, test::OneFamily());
  db.Create({"own", {}});
  db.Put("a", "precious", "own");
  db.Put("zzz", "precious");
}

void RequireOwn(const std::string& dir) {
  const test::OpenDb db(dir, {{"default", {}}, {"own", {}}});
  std::string value;
  REQUIRE_OK(db->Get(rocksdb::ReadOptions(), db.cf("own"), "a", &value));
  REQUIRE(value == "precious");
}

TEST_CASE("An exchange of an adopted part does not remove the rest",
          "[target][swap]") {
  ReplicaWorld world;
  MakeOwn(world.target());
  PullOptions part = PullFrom(world.source(), world.target());
  part.mode = PullMode::kRefresh;
  part.selection.families = {"default"};
  part.adopt = true;
  REQUIRE_OK(RunPull(part).status);
  part.adopt = GENERATE(false, true);
  PullOptions clone = part;
  clone.method = PullMethod::kClone;
  PullOptions swap = world.Options();
  swap.selection = part.selection;
  swap.adopt = part.adopt;
  for (int i = 0; i < 2; ++i) {
    RequireRefused(world, clone, "may hold more than");
    RequireRefused(world, clone, "--cf default --method ingest");
    RequireRefused(world, swap, "may hold more than");
    REQUIRE_OK(RunPull(part).status);  // in place, which changes only the part
  }
  RequireOwn(world.target());
}

TEST_CASE("A database that was adopted in parts is not replaced as a whole",
          "[target][swap]") {
  ReplicaWorld world;
  MakeOwn(world.target());
  PullOptions part = PullFrom(world.source(), world.target());
  part.mode = PullMode::kRefresh;
  part.adopt = true;
  part.selection.interval.begin = "a";
  part.selection.interval.end = "key000000200";
  REQUIRE_OK(RunPull(part).status);
  part.selection.interval.begin = "key000000200";
  part.selection.interval.end = "l";
  REQUIRE_OK(RunPull(part).status);
  PullOptions all = world.Options();
  RequireRefused(world, all, "was pulled in parts");
  all.mode = PullMode::kRefresh;
  RequireRefused(world, all, "was pulled in parts");
  REQUIRE(EntriesOf(world.target())["zzz"] == "precious");
  RequireOwn(world.target());
  all.adopt = true;
  REQUIRE_OK(RunPull(all).status);
  all.adopt = false;
  REQUIRE_OK(RunPull(all).status);
}

TEST_CASE("A replica of a part does not grow because its selection was "
          "forgotten", "[target][swap]") {
  ReplicaWorld world;
  PullOptions part = world.Options();
  part.selection.families = {"default"};
  part.selection.interval.begin = "key000000100";
  part.selection.interval.end = std::string("key000000300\0", 13);
  REQUIRE_OK(RunPull(part).status);
  world.Forget();
  const auto held = [&world] {
    LastTransfer last;
    REQUIRE(ReadLastTransfer(world.target(), &last));
    return last.holds;
  };
  const SelectionText all_of_part = TextOf(part.selection);
  REQUIRE(held() == all_of_part);
  PullOptions all = world.Options();
  all.mode = GENERATE(PullMode::kSwap, PullMode::kRefresh);
  part.mode = all.mode;
  const std::string words = " --cf default --begin key000000100 --end "
      "0x6B657930303030303033303000";
  const std::string command = std::string("sstferry ") +
                              PullModeName(all.mode) + " " + world.source() +
                              " " + world.target() + words;
  RequireRefused(world, all, "was pulled with" + words);
  RequireRefused(world, all, "next: " + command);
  RequireRefused(world, all, "needs --adopt");
  world.ChangeSource();
  if (all.mode == PullMode::kRefresh) {
    // A refresh may update less, and the record keeps the whole part.
    PullOptions less = part;
    less.selection.interval.begin = "key000000150";
    REQUIRE_OK(RunPull(less).status);
    REQUIRE(held() == all_of_part);
    PullOptions elsewhere = part;
    elsewhere.selection.interval.begin = "key000000050";
    RequireRefused(world, elsewhere, "was pulled with");
    elsewhere.adopt = true;
    REQUIRE_OK(RunPull(elsewhere).status);
    SelectionText more = all_of_part;
    more.begin.reset();
    REQUIRE(held() == more);
    part.selection.interval.begin.reset();
  }
  REQUIRE_OK(RunPull(part).status);
  REQUIRE(EntriesOf(world.target()).count("key000000350") == 0);
  all.adopt = true;
  REQUIRE_OK(RunPull(all).status);
  REQUIRE(held().is_all());
  REQUIRE(EntriesOf(world.target()) == EntriesOf(world.source()));
  all.adopt = false;
  REQUIRE_OK(RunPull(all).status);
}

TEST_CASE("A target that was replaced during a pull is left alone",
          "[target][swap]") {
  ReplicaWorld world;
  Fill(&world);
  world.ChangeSource();
  const bool vanishes = GENERATE(false, true);
  PullOptions options = world.Options();
  options.before_swap = [&](const SwapEvent&) {
    fs::rename(world.target(), world.root() + "/aside");
    if (!vanishes) {
      fs::copy(world.root() + "/aside", world.target(),
               fs::copy_options::recursive);
    }
    return rocksdb::Status::OK();
  };
  const Summary summary = RunPull(options);
  INFO(summary.status.ToString());
  REQUIRE(EndStateOf(summary.status) == EndState::kRefused);
  REQUIRE(fs::exists(world.target()) != vanishes);
  REQUIRE(world.calls() == std::vector<std::string>{"after as it was"});
  // The replacement was deliberate: the next pull accepts what it finds.
  REQUIRE_OK(RunPull(world.Options()).status);
  REQUIRE(EntriesOf(world.target()) == EntriesOf(world.source()));
}

TEST_CASE("A source without an id is identified by --source-id",
          "[target][swap]") {
  if (rocksdb::DBOptions().write_dbid_to_manifest) {
    return;  // newer versions also keep the id in the MANIFEST
  }
  ReplicaWorld world;
  fs::remove(world.source() + "/IDENTITY");
  PullOptions options = world.Options();
  RequireRefused(
      [&]() -> ReplicaWorld& {
        fs::create_directory(world.target());
        return world;
      }(),
      options, "give it one with --source-id");
  options.source_id = "shard 7";
  const Summary summary = RunPull(options);
  REQUIRE_OK(summary.status);
  REQUIRE(summary.source_database_id == "shard 7");
  REQUIRE_OK(RunPull(options).status);
  world.Forget();
  options.source_id = "shard 8";
  RequireRefused(world, options, "was pulled from another source");
}

TEST_CASE("An id that is not the source's own is refused", "[target][swap]") {
  ReplicaWorld world;
  fs::create_directory(world.target());
  PullOptions options = world.Options();
  options.source_id = "shard 7";
  RequireRefused(world, options, "leave out --source-id");
}

TEST_CASE("A column family that the source dropped is named",
          "[target][swap]") {
  ReplicaWorld world;
  rocksdb::ColumnFamilyHandle* family = nullptr;
  const auto with_family = [&](bool drop) {
    std::unique_ptr<rocksdb::DB> db;
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    std::vector<rocksdb::ColumnFamilyDescriptor> families = {
        {"default", {}}, {"extra", {}}};
    rocksdb::DBOptions options;
    options.create_missing_column_families = true;
    REQUIRE_OK(rocksdb::DB::Open(options, world.source(), families, &handles,
                                 IntoDb(&db)));
    family = handles[1];
    REQUIRE_OK(drop ? db->DropColumnFamily(family)
                    : db->Put(rocksdb::WriteOptions(), family, "a", "b"));
    for (rocksdb::ColumnFamilyHandle* handle : handles) {
      REQUIRE_OK(db->DestroyColumnFamilyHandle(handle));
    }
  };
  with_family(false);
  Fill(&world);
  with_family(true);
  const Summary summary = RunPull(world.Options());
  REQUIRE_OK(summary.status);
  const bool named = std::any_of(
      summary.notes.begin(), summary.notes.end(), [](const std::string& note) {
        return note.find("'extra' no longer exists at the source") !=
               std::string::npos;
      });
  REQUIRE(named);
}

}  // namespace
}  // namespace sstferry::replica_test
