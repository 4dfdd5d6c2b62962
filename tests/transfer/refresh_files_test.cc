// Tests refreshes of a replica that is made of files. The new set of files
// takes the place of TARGET_DIR; files that the replica has already are hard
// links.
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "pipeline/disk/durable.h"
#include "rocksdb/convenience.h"
#include "sstferry/status.h"
#include "tests/support/catch.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/log_bytes.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/sample_database.h"
#include "tests/support/test_db.h"

namespace sstferry::test::refresh_files_test {
namespace {

namespace fs = std::filesystem;

// Makes four tables of 200 kB that nothing compacts.
void MakeSource(const std::string& path,
                const rocksdb::DBOptions& options = {}) {
  OpenDb db(path, OneFamily(Quiet()), options);
  for (int table = 0; table < 4; ++table) {
    for (int i = 0; i < 200; ++i) {
      db.Put(NumberedKey(1000 * table + i), RandomBytes(1000, 7 * table + i));
    }
    db.Flush();
  }
}

// Changes one percent of the values, and flushes.
void Change(const std::string& path, const std::string& value) {
  OpenDb db(path, OneFamily(Quiet()));
  for (int i = 0; i < 8; ++i) {
    db.Put(NumberedKey(100 * i), value);
  }
  db.Flush();
}

ino_t InodeOf(const std::string& path) {
  struct stat info {};
  REQUIRE(stat(path.c_str(), &info) == 0);
  return info.st_ino;
}

std::set<ino_t> TablesOf(const std::string& dir) {
  std::set<ino_t> tables;
  for (const std::string& path : PathsWith(dir, ".sst")) {
    tables.insert(InodeOf(path));
  }
  return tables;
}

void Flip(const std::string& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const auto at = static_cast<std::streamoff>(fs::file_size(path) / 3);
  file.seekg(at);
  const int byte = file.get();
  file.seekp(at);
  file.put(static_cast<char>(byte ^ 0x10));
  REQUIRE(file.good());
}

std::string ManifestOf(const std::string& dir) {
  std::string current = BytesOf(dir + "/CURRENT");
  current.pop_back();
  return dir + "/" + current;
}

std::string IdOf(const std::string& dir) {
  ServedDatabase database;
  database.directory = dir;
  DatabaseFacts facts;
  REQUIRE_OK(DescribeDatabase(database, FactsOptions(), &facts));
  return facts.database_id;
}

ReplicaHealth HealthOf(const std::string& dir) {
  StatusOptions options;
  options.where.directory = dir;
  StatusReport report;
  REQUIRE_OK(MakeStatusQuery(options)->Run(&report));
  return report.target.health;
}

// Cancels a pull at a fault point.
Ferried StoppedAt(const std::string& point, const PullOptions& options) {
  const std::unique_ptr<Operation> pull = MakePull(options);
  TEST_SetFaultHook([&](const std::string& name) {
    if (name == point) pull->Cancel();
  });
  Ferried stopped;
  stopped.status = pull->Run(&stopped.summary);
  TEST_SetFaultHook(nullptr);
  return stopped;
}

// A source and its replica.
struct World {
  ScratchDir dir;
  std::string source = dir / "source";
  std::string target = dir / "target";
  explicit World(PullMethod method = PullMethod::kClone) {
    MakeSource(source);
    PullOptions options = Options();
    options.mode = PullMode::kPull;
    options.method = method;
    REQUIRE_OK(Run(options).status);
  }
  PullOptions Options() const {
    PullOptions options;
    options.source.directory = source;
    options.snapshot_ttl = std::chrono::seconds(0);
    options.target_dir = target;
    options.mode = PullMode::kRefresh;
    return options;
  }
  static Ferried Run(const PullOptions& options) {
    Ferried ran;
    ran.status = MakePull(options)->Run(&ran.summary);
    INFO(ran.message());
    return ran;
  }
  Ferried Refresh() const { return Run(Options()); }
  void RequireCurrent() const {
    ExpectSameEntries(source, target);
    REQUIRE_FALSE(fs::exists(target + ".sstferry"));
    for (const auto& entry : fs::directory_iterator(dir.path())) {
      REQUIRE(entry.path().filename().string().find(".old-") ==
              std::string::npos);
    }
  }
};

TEST_CASE("A replica that took the source's place is not replaced by it",
          "[transfer][files]") {
  const ScratchDir dir;
  const std::string target = dir / "target";
  MakeSource(dir / "source");
  PullOptions options;
  options.method = GENERATE(PullMethod::kClone, PullMethod::kIngest);
  REQUIRE_OK(Ferry(dir / "source", target, options).status);
  const auto write = [](const std::string& path, int count) {
    OpenDb db(path, OneFamily(Quiet()));
    for (int i = 0; i < count; ++i) {
      db.Put("written since " + std::to_string(i), path);
    }
    if (count % 2 == 0) db.Flush();
  };
  write(target, GENERATE(20, 21));
  options.mode = GENERATE(PullMode::kRefresh, PullMode::kSwap);
  options.source.directory = dir / "source";
  options.target_dir = target;
  bool is_stopped = false;
  options.before_swap = [&is_stopped](const SwapEvent&) {
    is_stopped = true;
    return rocksdb::Status::OK();
  };
  const auto run = [&options] {
    Ferried ferried;
    ferried.status = MakePull(options)->Run(&ferried.summary);
    return ferried;
  };
  write(dir / "source", 10);
  const Ferried refused = run();
  INFO(refused.message());
  REQUIRE(refused.state() == EndState::kRefused);
  REQUIRE(refused.message().find(target + " is newer than its source") !=
          std::string::npos);
  REQUIRE_FALSE(is_stopped);
  REQUIRE_FALSE(fs::exists(target + ".sstferry"));
  {
    OpenDb db(target, OneFamily(Quiet()));
    std::string value;
    REQUIRE_OK(db->Get(rocksdb::ReadOptions(), "written since 19", &value));
  }
  if (GENERATE(false, true)) {
    options.adopt = true;
  } else {
    write(dir / "source", 30);  // now it has more than the replica
  }
  const Ferried again = run();
  INFO(again.message());
  REQUIRE_OK(again.status);
  ExpectSameEntries(dir / "source", target);
}

TEST_CASE("A part of a clone that took the source's place is not refreshed in "
          "place",
          "[transfer][files]") {
  const ScratchDir dir;
  const std::string target = dir / "target";
  MakeSource(dir / "source");
  PullOptions options;
  options.method = PullMethod::kClone;
  options.selection.families = {"default"};
  REQUIRE_OK(Ferry(dir / "source", target, options).status);
  options.source.directory = dir / "source";
  options.target_dir = target;
  options.mode = PullMode::kRefresh;
  options.method = PullMethod::kAuto;
  const auto run = [&options] {
    Ferried ferried;
    ferried.status = MakePull(options)->Run(&ferried.summary);
    return ferried;
  };
  const bool loses_journal = GENERATE(false, true);
  const bool records_end = GENERATE(false, true);
  // Ingestions do not count as writes, not even after a run that did not end,
  // although the source has no writes that night.
  for (int night = 0; night < 4; ++night) {
    if (night == 2) {
      {
        OpenDb db(target, OneFamily(Quiet()));
        db.Compact();
        REQUIRE_OK(rocksdb::DeleteFilesInRange(db.get(), db.cf(), nullptr,
                                               nullptr));
      }
      PullOptions stopping = options;
      if (!records_end) {  // the start is recorded first
        const auto disk = std::make_shared<FaultyFileSystem>();
        disk->FailAt(FileStep::kRename, 2, DiskBroken(),
                     target + "/last_transfer.json");
        stopping.file_system = disk;
      }
      const Ferried stopped = StoppedAt("Refresh:AllIngested", stopping);
      INFO(stopped.message());
      REQUIRE_FALSE(stopped.status.ok());
      const std::string record = BytesOf(target + "/last_transfer.json");
      REQUIRE((record.find("\"ingesting\"") == std::string::npos) ==
              records_end);
      if (records_end) OpenDb(target, OneFamily(Quiet())).Compact();
      if (loses_journal) fs::remove_all(target + ".sstferry");
    } else {
      OpenDb(dir / "source", OneFamily(Quiet()))
          .Put(NumberedKey(static_cast<uint64_t>(night)), "new");
    }
    { const OpenDb opened(target, OneFamily(Quiet())); }  // writes nothing
    const Ferried refreshed = run();
    INFO(refreshed.message());
    REQUIRE_OK(refreshed.status);
    REQUIRE(refreshed.summary.method == "ingest");
  }
  {
    OpenDb db(target, OneFamily(Quiet()));
    for (int i = 0; i < 20; ++i) db.Put("written since", "value");
  }
  OpenDb(dir / "source", OneFamily(Quiet())).Put(NumberedKey(1), "revived");
  const Ferried refused = run();
  INFO(refused.message());
  REQUIRE(refused.state() == EndState::kRefused);
  REQUIRE(refused.message().find(target + " is newer than its source") !=
          std::string::npos);
  REQUIRE_FALSE(fs::exists(target + ".sstferry"));
  options.adopt = true;
  REQUIRE_OK(run().status);
  ExpectSameEntries(dir / "source", target);
}

TEST_CASE("A new primary is not replaced if it has a family that the old "
          "source lacks",
          "[transfer][files]") {
  const World world(PullMethod::kIngest);
  Families both = OneFamily(Quiet());
  both.emplace_back("made here", Quiet());
  const auto write = [&](const std::string& family) {
    OpenDb db(world.target, both);
    for (int i = 0; i < 20; ++i) {
      db.Put("written since " + std::to_string(i), "value", family);
    }
  };
  const auto require_written = [&](const std::string& family) {
    const OpenDb db(world.target, both);
    std::string value;
    REQUIRE_OK(db->Get(rocksdb::ReadOptions(), db.cf(family),
                       "written since 19", &value));
  };
  write("made here");
  PullOptions options = world.Options();
  options.method = PullMethod::kIngest;
  if (GENERATE(false, true)) options.selection.families = {"default"};
  // An application may write to a family that the refresh leaves as it is.
  for (int night = 0; night < 2; ++night) {
    OpenDb(world.source, OneFamily(Quiet()))
        .Put(NumberedKey(static_cast<uint64_t>(night)), "new");
    write("made here");
    // This stays allowed after a run that died after its ingestion.
    REQUIRE_FALSE(StoppedAt("Refresh:AllIngested", options).status.ok());
    if (night == 1) fs::remove_all(world.target + ".sstferry");
    const Ferried refreshed = World::Run(options);
    INFO(refreshed.message());
    REQUIRE_OK(refreshed.status);
    require_written("made here");
  }
  write("default");
  if (GENERATE(false, true)) {  // the newest writes are in the other family
    { OpenDb(world.target, both).Flush(); }
    write("made here");
  }
  const Ferried refused = World::Run(options);
  INFO(refused.message());
  REQUIRE(refused.state() == EndState::kRefused);
  REQUIRE(refused.message().find("is newer than its source") !=
          std::string::npos);
  require_written("default");
  options.adopt = true;
  REQUIRE_OK(World::Run(options).status);
  require_written("made here");
}

TEST_CASE("A refresh does not drop a family to which a new primary writes",
          "[transfer][files]") {
  const World world(PullMethod::kIngest);
  Families both = OneFamily(Quiet());
  both.emplace_back("made here", Quiet());
  { OpenDb(world.target, both).Put("written since", "value", "made here"); }
  PullOptions options = world.Options();
  options.method = PullMethod::kIngest;
  options.drop_missing = true;
  const Ferried refused = World::Run(options);
  INFO(refused.message());
  REQUIRE(refused.state() == EndState::kRefused);
  REQUIRE(refused.message().find("is newer than its source") !=
          std::string::npos);
  // After a refresh that leaves the family as it is, the writes count as old,
  // and the next refresh may drop the family.
  options.drop_missing = false;
  REQUIRE_OK(World::Run(options).status);
  options.drop_missing = true;
  REQUIRE_OK(World::Run(options).status);
  std::vector<std::string> names;
  REQUIRE_OK(rocksdb::DB::ListColumnFamilies({}, world.target, &names));
  REQUIRE(names.size() == 1);
}

TEST_CASE("A replica of some keys that took the source's place is not "
          "refreshed in place",
          "[transfer][files]") {
  const ScratchDir dir;
  const std::string target = dir / "target";
  MakeSource(dir / "source");
  PullOptions options;
  const bool by_begin = GENERATE(true, false);
  if (by_begin) {
    options.selection.interval.begin = NumberedKey(1000);
  } else {
    options.selection.interval.end = NumberedKey(2000);
  }
  REQUIRE_OK(Ferry(dir / "source", target, options).status);
  options.source.directory = dir / "source";
  options.target_dir = target;
  options.mode = PullMode::kRefresh;
  const auto run = [&options] {
    Ferried ferried;
    ferried.status = MakePull(options)->Run(&ferried.summary);
    return ferried;
  };
  const auto write = [](const std::string& path, uint64_t key, int count) {
    OpenDb db(path, OneFamily(Quiet()));
    for (int i = 0; i < count; ++i) db.Put(NumberedKey(key), path);
  };
  write(dir / "source", 1500, 1);
  REQUIRE_OK(run().status);
  write(target, 1500, 20);
  write(dir / "source", 1501, 1);
  const Ferried refused = run();
  INFO(refused.message());
  REQUIRE(refused.state() == EndState::kRefused);
  REQUIRE(refused.message().find(target + " is newer than its source") !=
          std::string::npos);
  // An application may write other keys than those that are refreshed.
  const uint64_t other = by_begin ? 999 : 2000;
  write(target, other, 20);
  const Ferried refreshed = run();
  INFO(refreshed.message());
  REQUIRE_OK(refreshed.status);
  OpenDb db(target, OneFamily(Quiet()));
  std::string value;
  REQUIRE_OK(db->Get(rocksdb::ReadOptions(), NumberedKey(other), &value));
  REQUIRE(value == target);
  REQUIRE_OK(db->Get(rocksdb::ReadOptions(), NumberedKey(1500), &value));
  REQUIRE(value == dir / "source");
}

TEST_CASE("Writes after a failed ingestion are not overwritten",
          "[transfer][files]") {
  const World world(PullMethod::kIngest);
  {
    // Deletes the entries of the target. Then the source has entries to send,
    // although nobody wrote to it.
    OpenDb db(world.target, OneFamily(Quiet()));
    db.Compact();
    REQUIRE_OK(
        rocksdb::DeleteFilesInRange(db.get(), db.cf(), nullptr, nullptr));
  }
  const auto disk = std::make_shared<FaultyFileSystem>();
  disk->FailAt(FileStep::kLink, 1, DiskBroken(), world.target + "/");
  PullOptions failing = world.Options();
  failing.file_system = disk;
  const Ferried failed = World::Run(failing);
  INFO(failed.message());
  REQUIRE_FALSE(failed.status.ok());
  REQUIRE(disk->count(FileStep::kLink, world.target + "/") == 1);
  {
    OpenDb db(world.target, OneFamily(Quiet()));
    db.Put("written since", "value");
    if (GENERATE(false, true)) {
      db.Flush();
      db.Compact();
    }
  }
  PullOptions options = world.Options();
  Summary plan;
  REQUIRE(EndStateOf(MakePlan(options)->Run(&plan)) == EndState::kRefused);
  for (int night = 0; night < 2; ++night) {
    const Ferried refused = World::Run(options);
    INFO(refused.message());
    REQUIRE(refused.state() == EndState::kRefused);
    REQUIRE(refused.message().find("is newer than its source") !=
            std::string::npos);
    OpenDb db(world.target, OneFamily(Quiet()));
    std::string value;
    REQUIRE_OK(db->Get(rocksdb::ReadOptions(), "written since", &value));
  }
  options.adopt = true;
  REQUIRE_OK(World::Run(options).status);
  world.RequireCurrent();
}

TEST_CASE("A new primary whose record lacks its sequence number is not "
          "replaced",
          "[transfer][files]") {
  const World world;
  const std::string path = world.target + "/last_transfer.json";
  std::string record = BytesOf(path);
  const std::string name = "\"target_sequence\"";
  const size_t at = record.find(name);
  REQUIRE(at != std::string::npos);
  record.replace(at, name.size(), "\"unknown\"");
  WriteBytes(path, record);
  OpenDb(world.target, OneFamily(Quiet())).Put("written since", "value");
  PullOptions options = world.Options();
  options.mode = GENERATE(PullMode::kRefresh, PullMode::kSwap);
  const Ferried refused = World::Run(options);
  INFO(refused.message());
  REQUIRE(refused.state() == EndState::kRefused);
  REQUIRE(refused.message().find("is newer than its source") !=
          std::string::npos);
}

TEST_CASE("A new primary that cannot be read now is not replaced",
          "[transfer][files]") {
  const World world;
  {
    OpenDb db(world.target, OneFamily(Quiet()));
    db.Put("written since", "value");
  }
  PullOptions options = world.Options();
  options.mode = PullMode::kSwap;
  const auto disk = std::make_shared<FaultyFileSystem>();
  SECTION("its MANIFEST") {
    disk->FailAt(FileStep::kRead, 1, DiskBroken(), world.target + "/MANIFEST-",
                 /*for_good=*/true);
    options.file_system = disk;
  }
  SECTION("a record of its WAL that only a later RocksDB knows") {
    std::vector<std::string> wals = PathsWith(world.target, ".log");
    std::sort(wals.begin(), wals.end());
    std::ofstream(wals.back(), std::ios::app | std::ios::binary)
        << PhysicalRecord(100, "unknown");
  }
  const Ferried refused = World::Run(options);
  INFO(refused.message());
  REQUIRE(refused.state() == EndState::kRefused);
  REQUIRE(refused.message().find("cannot find out if an application has "
                                 "written to it") != std::string::npos);
  REQUIRE(refused.message().find("--adopt") != std::string::npos);
  OpenDb db(world.target, OneFamily(Quiet()));
  std::string value;
  REQUIRE_OK(db->Get(rocksdb::ReadOptions(), "written since", &value));
}

TEST_CASE("A refresh of a clone sends new files, links the others and replaces "
          "the clone",
          "[transfer][clone][refresh]") {
  const World world;
  const std::set<ino_t> before = TablesOf(world.target);
  const ino_t directory = InodeOf(world.target);
  const std::string id = IdOf(world.target);
  Change(world.source, "changed");
  PullOptions options = world.Options();
  Summary plan;
  REQUIRE_OK(MakePlan(options)->Run(&plan));
  REQUIRE(plan.mode == "refresh");
  REQUIRE(plan.method == "clone");
  REQUIRE(plan.files_reused == 4);
  // A refresh calls no hooks and does not keep the old directory.
  options.keeps_old = true;
  options.before_swap = options.after_swap = [](const SwapEvent&) {
    return MakeStatus(EndState::kInternal, "called");
  };
  const Ferried night = World::Run(options);
  INFO(night.message());
  REQUIRE_OK(night.status);
  REQUIRE(night.summary.mode == "refresh");
  REQUIRE(night.summary.method == "clone");
  REQUIRE(night.summary.exchanged);
  REQUIRE(night.summary.files_reused == 4);
  REQUIRE(night.summary.sst_bytes < 60'000);
  REQUIRE(night.summary.sequence_old < night.summary.sequence_new);
  REQUIRE(InodeOf(world.target) != directory);
  const std::set<ino_t> after = TablesOf(world.target);
  REQUIRE(after.size() == 5);
  for (const ino_t table : before) {
    REQUIRE(after.contains(table));
  }
  REQUIRE(IdOf(world.target) == id);
  world.RequireCurrent();
}

TEST_CASE("A refresh of an unchanged clone exchanges nothing",
          "[transfer][clone][refresh]") {
  const World world;
  const ino_t directory = InodeOf(world.target);
  PullOptions options = world.Options();
  options.verify = GENERATE(false, true);
  options.always_swap = true;  // has no effect on a refresh
  const Ferried night = World::Run(options);
  INFO(night.message());
  REQUIRE_OK(night.status);
  REQUIRE(night.summary.mode == "refresh");
  REQUIRE_FALSE(night.summary.exchanged);
  REQUIRE(night.summary.verified == options.verify);
  REQUIRE(night.summary.chunks == 0);
  REQUIRE(InodeOf(world.target) == directory);
  world.RequireCurrent();
}

TEST_CASE("A refresh mends a clone with a known fault",
          "[transfer][clone][refresh][health]") {
  const World world;
  const std::string table = PathsWith(world.target, ".sst").front();
  SECTION("a changed bit, found by a comparison") {
    Flip(table);
    VerifyOptions compare;
    compare.left.directory = world.source;
    compare.right.directory = world.target;
    Summary compared;
    REQUIRE_FALSE(MakeVerify(compare)->Run(&compared).ok());
  }
  SECTION("a missing file") { fs::remove(table); }
  REQUIRE(HealthOf(world.target) == ReplicaHealth::kDamaged);
  if (GENERATE(false, true)) Change(world.source, "changed");
  const Ferried mended = world.Refresh();
  INFO(mended.message());
  REQUIRE_OK(mended.status);
  REQUIRE(mended.summary.exchanged);
  REQUIRE(HealthOf(world.target) == ReplicaHealth::kComplete);
  world.RequireCurrent();
}

TEST_CASE("A clone with a damaged MANIFEST is not current, but damaged",
          "[transfer][clone][refresh][health]") {
  const World world;
  const std::string id = IdOf(world.target);
  const std::string manifest = ManifestOf(world.target);
  std::string bytes = BytesOf(manifest);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  WriteBytes(manifest, bytes);
  REQUIRE(HealthOf(world.target) == ReplicaHealth::kDamaged);
  if (GENERATE(false, true)) {
    VerifyOptions compare;
    compare.left.directory = world.source;
    compare.right.directory = world.target;
    Summary compared;
    const rocksdb::Status status = MakeVerify(compare)->Run(&compared);
    INFO(status.ToString());
    REQUIRE(EndStateOf(status) == EndState::kCorrupt);
  }
  const Ferried mended = world.Refresh();
  INFO(mended.message());
  REQUIRE_OK(mended.status);
  REQUIRE(mended.summary.exchanged);
  REQUIRE(IdOf(world.target) == id);
  REQUIRE(HealthOf(world.target) == ReplicaHealth::kComplete);
  world.RequireCurrent();
}

TEST_CASE("A refresh of a clone with --verify reads what it links",
          "[transfer][clone][refresh]") {
  const World world;
  Flip(PathsWith(world.target, ".sst").front());
  PullOptions options = world.Options();
  options.verify = true;
  const Ferried mended = World::Run(options);
  INFO(mended.message());
  REQUIRE_OK(mended.status);
  REQUIRE(mended.summary.files_reused == 3);
  REQUIRE(mended.summary.verified);
  world.RequireCurrent();
}

TEST_CASE("A refresh changes the method of a replica only on request",
          "[transfer][method][refresh]") {
  const bool is_clone = GENERATE(false, true);
  const World world(is_clone ? PullMethod::kClone : PullMethod::kIngest);
  const ino_t directory = InodeOf(world.target);
  Change(world.source, "first");
  const Ferried kept = world.Refresh();
  REQUIRE_OK(kept.status);
  REQUIRE(kept.summary.method == (is_clone ? "clone" : "ingest"));
  REQUIRE((InodeOf(world.target) != directory) == is_clone);
  const ino_t second = InodeOf(world.target);
  PullOptions other = world.Options();
  other.method = is_clone ? PullMethod::kIngest : PullMethod::kClone;
  Change(world.source, "second");
  const Ferried changed = World::Run(other);
  INFO(changed.message());
  REQUIRE_OK(changed.status);
  REQUIRE(changed.summary.mode == "refresh");
  REQUIRE(changed.summary.method == (is_clone ? "ingest" : "clone"));
  REQUIRE((InodeOf(world.target) == second) == is_clone);
  world.RequireCurrent();
  Change(world.source, "third");
  const Ferried next = world.Refresh();
  REQUIRE_OK(next.status);
  REQUIRE(next.summary.method == changed.summary.method);
  world.RequireCurrent();
}

TEST_CASE("A part of a clone, or a clone of an unrelated source, is refreshed "
          "in place",
          "[transfer][clone][refresh]") {
  const World world;
  const ino_t directory = InodeOf(world.target);
  Change(world.source, "changed");
  PullOptions options = world.Options();
  SECTION("some families") { options.selection.families = {"default"}; }
  SECTION("some keys") { options.selection.interval.end = NumberedKey(9999); }
  SECTION("an unrelated source") { options.adopt = true; }
  const Ferried night = World::Run(options);
  INFO(night.message());
  REQUIRE_OK(night.status);
  REQUIRE(night.summary.method == "ingest");
  REQUIRE(night.summary.parts_compared > 0);
  REQUIRE(InodeOf(world.target) == directory);
  world.RequireCurrent();
}

TEST_CASE("A refresh of a clone is resumed with its own method",
          "[transfer][clone][refresh]") {
  const World world;
  Change(world.source, "changed");
  PullOptions begun = world.Options();
  begun.snapshot_ttl = std::chrono::hours(1);
  SECTION("by files") {
    REQUIRE(StoppedAt("Puller:TotalsAgreed", begun).state() ==
            EndState::kCancelled);
    const Ferried night = world.Refresh();
    INFO(night.message());
    REQUIRE_OK(night.status);
    REQUIRE(night.summary.method == "clone");
    REQUIRE(night.summary.chunks_resumed > 0);
  }
  SECTION("in place") {
    begun.method = PullMethod::kIngest;
    REQUIRE(StoppedAt("Puller:TotalsAgreed", begun).state() ==
            EndState::kCancelled);
    const Ferried night = world.Refresh();
    INFO(night.message());
    REQUIRE_OK(night.status);
    REQUIRE(night.summary.method == "ingest");
    REQUIRE(night.notes_mention("all data had already arrived"));
  }
  world.RequireCurrent();
}

TEST_CASE("A refresh resumes a pull that never filled TARGET_DIR",
          "[transfer][clone][refresh]") {
  const World world;
  fs::remove_all(world.target);
  PullOptions pull = world.Options();
  pull.mode = PullMode::kPull;
  pull.snapshot_ttl = std::chrono::hours(1);
  REQUIRE(StoppedAt("Puller:TotalsAgreed", pull).state() ==
          EndState::kCancelled);
  const Ferried filled = world.Refresh();
  INFO(filled.message());
  REQUIRE_OK(filled.status);
  REQUIRE(filled.summary.mode == "pull");
  REQUIRE(filled.summary.chunks_resumed > 0);
  world.RequireCurrent();
}

TEST_CASE("A refreshed clone stays the source of its own replicas",
          "[transfer][clone][refresh]") {
  const World world;
  PullOptions below = world.Options();
  below.source.directory = world.target;
  below.target_dir = world.dir / "below";
  below.method = GENERATE(PullMethod::kIngest, PullMethod::kClone);
  REQUIRE_OK(World::Run(below).status);
  Change(world.source, "changed");
  REQUIRE_OK(world.Refresh().status);
  below.method = PullMethod::kAuto;
  const Ferried night = World::Run(below);
  INFO(night.message());
  REQUIRE_OK(night.status);
  ExpectSameEntries(world.source, world.dir / "below");
}

TEST_CASE("A refresh of a clone keeps its database id, or says that it cannot",
          "[transfer][clone][refresh]") {
  const World world;
  const std::string id = IdOf(world.target);
  const std::string identity = world.target + "/IDENTITY";
  Change(world.source, "changed");
  const bool is_there = GENERATE(false, true);
  const auto damage_manifest = [&] {
    const std::string manifest = ManifestOf(world.target);
    fs::remove(manifest);
    if (is_there) std::ofstream(manifest) << std::string(500, 'x');
  };
  SECTION("the MANIFEST is damaged") {
    damage_manifest();
    const Ferried night = world.Refresh();
    INFO(night.message());
    REQUIRE_OK(night.status);
    REQUIRE(night.summary.files_reused == 0);
    REQUIRE(IdOf(world.target) == id);
    world.RequireCurrent();
  }
  SECTION("the id is nowhere") {
    damage_manifest();
    SECTION("IDENTITY is gone") { fs::remove(identity); }
    SECTION("IDENTITY is no id") {
      std::ofstream(identity) << std::string(100'000, 'x');
    }
    const std::string before = Fingerprint(world.target);
    Summary plan;
    const rocksdb::Status planned = MakePlan(world.Options())->Run(&plan);
    REQUIRE(EndStateOf(planned) == EndState::kRefused);
    const Ferried night = world.Refresh();
    INFO(night.message());
    REQUIRE(night.state() == EndState::kRefused);
    REQUIRE(NextOf(night.status) ==
            "sstferry swap " + world.source + " " + world.target);
    REQUIRE(night.summary.chunks == 0);
    REQUIRE(Fingerprint(world.target) == before);
    REQUIRE_FALSE(fs::exists(world.target + ".sstferry"));
  }
}

TEST_CASE("A refresh of a clone without a database id adds none",
          "[transfer][clone][refresh]") {
  const bool has_one_now = GENERATE(false, true);
  const ScratchDir dir;
  rocksdb::DBOptions database;
  database.write_dbid_to_manifest = false;
  MakeSource(dir / "source", database);
  fs::remove(dir / "source/IDENTITY");
  PullOptions options;
  options.source.directory = dir / "source";
  options.source_id = "named-by-the-operator";
  options.snapshot_ttl = std::chrono::seconds(0);
  options.target_dir = dir / "target";
  options.method = PullMethod::kClone;
  REQUIRE_OK(World::Run(options).status);
  REQUIRE(IdOf(dir / "target").empty());
  {
    OpenDb db(dir / "source", OneFamily(Quiet()), database);
    db.Put(NumberedKey(1), "changed");
    db.Flush();
  }
  if (has_one_now) {
    std::ofstream(dir / "source/IDENTITY") << options.source_id;
  } else {
    fs::remove(dir / "source/IDENTITY");
  }
  options.mode = PullMode::kRefresh;
  const Ferried night = World::Run(options);
  INFO(night.message());
  REQUIRE_OK(night.status);
  REQUIRE(night.summary.exchanged);
  REQUIRE(IdOf(dir / "target").empty());
  ExpectSameEntries(dir / "source", dir / "target");
}

TEST_CASE("A refresh of a clone whose database id may be in an incomplete "
          "record is refused",
          "[transfer][clone][refresh]") {
  const ScratchDir dir;
  rocksdb::DBOptions database;
  database.write_dbid_to_manifest = false;
  MakeSource(dir / "source", database);
  fs::remove(dir / "source/IDENTITY");
  PullOptions options;
  options.source.directory = dir / "source";
  options.source_id = "named-by-the-operator";
  options.snapshot_ttl = std::chrono::seconds(0);
  options.target_dir = dir / "target";
  options.method = PullMethod::kClone;
  REQUIRE_OK(World::Run(options).status);
  const std::string manifest = ManifestOf(dir / "target");
  fs::resize_file(manifest, fs::file_size(manifest) - 1);
  options.mode = PullMode::kRefresh;
  const Ferried night = World::Run(options);
  INFO(night.message());
  REQUIRE(night.state() == EndState::kRefused);
  REQUIRE(NextOf(night.status).starts_with("sstferry swap "));
}

TEST_CASE("A refresh of a clone changes neither an open one nor one of another "
          "database",
          "[transfer][clone][refresh]") {
  const World world;
  Change(world.source, "changed");
  PullOptions options = world.Options();
  EndState expected = EndState::kBusy;
  std::optional<OpenDb> application;
  SECTION("an application has it open") {
    application.emplace(world.target, OneFamily(Quiet()));
  }
  SECTION("it is of another database") {
    MakeSource(world.dir / "other");
    options.source.directory = world.dir / "other";
    expected = EndState::kRefused;
  }
  const std::string before = Fingerprint(world.target);
  const Ferried night = World::Run(options);
  INFO(night.message());
  REQUIRE(night.state() == expected);
  REQUIRE(Fingerprint(world.target) == before);
  REQUIRE_FALSE(fs::exists(world.target + ".sstferry"));
}

TEST_CASE("A refresh does not exchange a clone that became a standby meanwhile",
          "[transfer][clone][refresh]") {
  const World world;
  Change(world.source, "changed");
  std::string before;
  TEST_SetFaultHook([&](const std::string& name) {
    if (name != "Puller:TotalsAgreed") {
      return;
    }
    fs::remove(world.target + "/CURRENT");
    WriteBytes(world.target + "/sstferry.follow", "");
    before = Fingerprint(world.target);
  });
  const Ferried night = world.Refresh();
  TEST_SetFaultHook(nullptr);
  INFO(night.message());
  REQUIRE(night.state() == EndState::kRefused);
  REQUIRE(NextOf(night.status).starts_with("sstferry follow "));
  REQUIRE(Fingerprint(world.target) == before);
}

TEST_CASE("A foreign directory in a clone is refused, with the advice to "
          "refresh in place",
          "[transfer][clone][refresh][refused]") {
  const World world;
  Change(world.source, "changed");
  fs::create_directory(world.target + "/foreign");
  const Ferried refused = world.Refresh();
  INFO(refused.message());
  REQUIRE(refused.state() == EndState::kRefused);
  REQUIRE(NextOf(refused.status) ==
          "sstferry refresh " + world.source + " " + world.target +
              " --method ingest");
  REQUIRE_FALSE(fs::exists(world.target + ".sstferry"));
  PullOptions in_place = world.Options();
  in_place.method = PullMethod::kIngest;
  REQUIRE_OK(World::Run(in_place).status);
  REQUIRE(fs::exists(world.target + "/foreign"));
  world.RequireCurrent();
}

}  // namespace
}  // namespace sstferry::test::refresh_files_test
