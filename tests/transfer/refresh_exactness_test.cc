// What only looks unchanged: a refresh that believes it would be silently
// wrong. Each case is one way to look like what it is not.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "pipeline/disk/durable.h"
#include "pipeline/pull/refresh_records.h"
#include "pipeline/refresh/interval_records.h"
#include "rocksdb/convenience.h"
#include "rocksdb/sst_file_writer.h"
#include "tests/support/catch.h"
#include "tests/support/refreshed.h"

namespace sstferry::test::refresh_exactness_test {
namespace {

namespace fs = std::filesystem;

const Families kTwo = {{"default", Quiet()}, {"b", Quiet()}};

std::string Get(const std::string& dir, const std::string& key,
                const std::string& family = "default") {
  OpenDb db(dir, kTwo);
  std::string value;
  const rocksdb::Status status =
      db->Get(rocksdb::ReadOptions(), db.cf(family), key, &value);
  REQUIRE((status.ok() || status.IsNotFound()));
  return status.ok() ? value : "(none)";
}

void Put(const std::string& dir, const std::string& key,
         const std::string& value, const std::string& family = "default") {
  rocksdb::DBOptions options;
  options.avoid_flush_during_recovery = true;
  OpenDb(dir, kTwo, options).Put(key, value, family);
}

void Compact(const std::string& dir) {
  OpenDb db(dir, kTwo);
  db.Flush();
  db.Compact();
  db.Compact("b");
}

void Copy(const std::string& from, const std::string& to) {
  fs::remove_all(to);
  fs::copy(from, to, fs::copy_options::recursive);
}

PullOptions Selecting(const std::string& family) {
  PullOptions options;
  options.selection.families = {family};
  return options;
}

// All of it, without a look at any entry.
void RequireBelieved(const Ferried& refreshed) {
  REQUIRE_OK(refreshed.status);
  REQUIRE(refreshed.summary.parts_unchanged == refreshed.summary.parts);
  REQUIRE(refreshed.summary.parts_compared == 0);
}

// Whoever opens the source now does not know the order of "b".
void NameOrderOfB(const std::string& dir, const std::string& from,
                  const std::string& to) {
  std::vector<std::string> files = PathsWith(dir, "");
  std::string newest;
  for (const std::string& path : files) {
    const std::string name = fs::path(path).filename();
    if (name.rfind("OPTIONS-", 0) == 0) {
      newest = std::max(newest, path);
    }
  }
  std::ostringstream text;
  text << std::ifstream(newest).rdbuf();
  std::string changed = text.str();
  const std::string line = "comparator=" + from + "\n";
  const size_t at = changed.rfind("\n  " + line);
  REQUIRE(at != std::string::npos);
  changed.replace(at + 3, line.size(), "comparator=" + to + "\n");
  std::ofstream(newest) << changed;
}

// Writes an SST file with one entry, ingests a copy, keeps the file.
void MakeTable(const std::string& path, const std::string& key,
               const std::string& value) {
  rocksdb::SstFileWriter writer{rocksdb::EnvOptions(), rocksdb::Options()};
  REQUIRE_OK(writer.Open(path));
  REQUIRE_OK(writer.Put(key, value));
  REQUIRE_OK(writer.Finish());
}

void Ingest(const std::string& dir, const std::string& path) {
  OpenDb db(dir, kTwo);
  REQUIRE_OK(db->IngestExternalFile({path}, {}));
}

TEST_CASE("What a source that could not flush holds in memory is compared",
          "[transfer][refresh][evidence]") {
  const ScratchDir dir;
  const std::string source = dir / "source";
  Put(source, "base", "1");
  Put(source, "base", "1", "b");
  Compact(source);
  const std::string bytewise = rocksdb::BytewiseComparator()->Name();
  Put(source, "k", "v1");
  NameOrderOfB(source, bytewise, "app.Order");
  REQUIRE_OK(Refresh(source, dir / "target", Selecting("default")).status);
  REQUIRE(Get(dir / "target", "k") == "v1");
  NameOrderOfB(source, "app.Order", bytewise);
  Put(source, "k", "v2");
  Put(source, "k2", "x");
  NameOrderOfB(source, bytewise, "app.Order");
  const Ferried second =
      Refresh(source, dir / "target", Selecting("default"));
  REQUIRE_OK(second.status);
  REQUIRE(second.notes_mention("opened read-only"));
  REQUIRE(Get(dir / "target", "k") == "v2");
  REQUIRE(Get(dir / "target", "k2") == "x");
  // The same WALs are the same entries.
  RequireBelieved(Refresh(source, dir / "target", Selecting("default")));
}

TEST_CASE("Another database at the same sequence is another database",
          "[transfer][refresh][evidence]") {
  const ScratchDir dir;
  Put(dir / "a", "k", "fromA");
  Put(dir / "b", "k", "fromB");
  REQUIRE_OK(Refresh(dir / "a", dir / "target").status);
  PullOptions adopting;
  adopting.adopt = true;
  REQUIRE_OK(Refresh(dir / "b", dir / "target", adopting).status);
  REQUIRE(Get(dir / "target", "k") == "fromB");
}

TEST_CASE("A source that was rolled back and written again is compared",
          "[transfer][refresh][evidence]") {
  const ScratchDir dir;
  const std::string source = dir / "source";
  Put(source, "base", "1");
  Compact(source);
  Copy(source, dir / "saved");
  Put(source, "k", "wrong");
  REQUIRE_OK(Refresh(source, dir / "target").status);
  Copy(dir / "saved", source);
  Put(source, "k", "right");
  REQUIRE_OK(Refresh(source, dir / "target").status);
  REQUIRE(Get(dir / "target", "k") == "right");
}

TEST_CASE("The same file ingested a second time wins over what came between",
          "[transfer][refresh][evidence]") {
  const ScratchDir dir;
  const std::string source = dir / "source";
  MakeTable(dir / "1.sst", "k", "v1");
  MakeTable(dir / "2.sst", "k", "v2");
  Ingest(source, dir / "1.sst");
  Ingest(source, dir / "2.sst");
  REQUIRE_OK(Refresh(source, dir / "target").status);
  REQUIRE(Get(dir / "target", "k") == "v2");
  Ingest(source, dir / "1.sst");
  REQUIRE_OK(Refresh(source, dir / "target").status);
  REQUIRE(Get(dir / "target", "k") == "v1");
}

TEST_CASE("A merge operator with other options reads the same files otherwise",
          "[transfer][refresh][evidence]") {
  const ScratchDir dir;
  const std::string source = dir / "source";
  const auto with_delimiter = [](const std::string& delimiter) {
    rocksdb::ColumnFamilyOptions options = Quiet();
    options.merge_operator = MergeOperatorNamed(
        "{id=StringAppendOperator;delimiter=" + delimiter + ";}");
    return OneFamily(options);
  };
  {
    OpenDb db(source, with_delimiter(","));
    for (const char* operand : {"1", "2", "3"}) {
      db.Merge("k", operand);
      db.Flush();  // else it becomes one operand
    }
    db.Put("other", "value");
    db.Flush();
  }
  REQUIRE_OK(Refresh(source, dir / "target").status);
  REQUIRE(EntriesOf(dir / "target", OneFamily())[0].second == "1,2,3");
  RequireBelieved(Refresh(source, dir / "target"));
  { OpenDb db(source, with_delimiter("+")); }  // OPTIONS name it from here on
  const Ferried refreshed = Refresh(source, dir / "target");
  REQUIRE_OK(refreshed.status);
  CHECK(refreshed.summary.parts_compared > 0);
  REQUIRE(EntriesOf(dir / "target", OneFamily())[0].second == "1+2+3");
  RequireBelieved(Refresh(source, dir / "target"));
}

// A source of two families, and a target that is equal to it.
struct TwoFamilies {
  ScratchDir dir;
  std::string source = dir / "source";
  std::string target = dir / "target";
  TwoFamilies() {
    Put(source, "a", "1");
    Put(source, "m", "1", "b");
    Put(source, "z", "1", "b");
    Compact(source);
    REQUIRE_OK(Refresh(source, target).status);
  }
};

TEST_CASE("A refresh of one family believes nothing of another",
          "[transfer][refresh][evidence]") {
  const bool by_key = GENERATE(false, true);
  TwoFamilies world;
  Put(world.target, "n", "foreign", "b");
  PullOptions partly = Selecting(by_key ? "b" : "default");
  if (by_key) {
    partly.selection.interval = {"x", std::nullopt};
  }
  REQUIRE_OK(Refresh(world.source, world.target, partly).status);
  REQUIRE(Get(world.target, "n", "b") == "foreign");
  PullOptions verifying;
  verifying.verify = true;
  REQUIRE_OK(Refresh(world.source, world.target, verifying).status);
  REQUIRE(Get(world.target, "n", "b") == "(none)");
  const Ferried again = Refresh(world.source, world.target);
  RequireBelieved(again);
}

TEST_CASE("A refresh of one family remembers the others as they are",
          "[transfer][refresh][evidence]") {
  TwoFamilies world;
  REQUIRE_OK(Refresh(world.source, world.target, Selecting("default")).status);
  const Ferried again = Refresh(world.source, world.target);
  REQUIRE_OK(again.status);
  RequireBelieved(again);
}

TEST_CASE("A file that was ingested and compacted at the target is found",
          "[transfer][refresh][evidence]") {
  TwoFamilies world;
  MakeTable(world.dir / "z.sst", "zz", "foreign");
  Ingest(world.target, world.dir / "z.sst");
  Compact(world.target);
  REQUIRE(Get(world.target, "zz") == "foreign");
  REQUIRE_OK(Refresh(world.source, world.target).status);
  REQUIRE(Get(world.target, "zz") == "(none)");
}

TEST_CASE("What the target's own compactions dropped comes again",
          "[transfer][refresh][evidence]") {
  TwoFamilies world;
  {
    OpenDb db(world.target, kTwo);
    // Leaves no sequence, as a compaction filter does.
    REQUIRE_OK(rocksdb::DeleteFilesInRange(db.get(), db.cf("b"), nullptr,
                                           nullptr));
  }
  REQUIRE(Get(world.target, "z", "b") == "(none)");
  REQUIRE_OK(Refresh(world.source, world.target).status);
  REQUIRE(Get(world.target, "z", "b") == "1");
}

TEST_CASE("A memory is not believed beside the data of another day",
          "[transfer][refresh][evidence]") {
  const bool newer_memory = GENERATE(false, true);
  TwoFamilies world;
  const std::string memory = "/sstferry.intervals";
  Copy(world.target, world.dir / "day1");
  Put(world.source, "a", "2");
  Put(world.source, "y", "2", "b");
  Compact(world.source);
  REQUIRE_OK(Refresh(world.source, world.target).status);
  Copy(world.target, world.dir / "day2");
  Copy(world.dir / (newer_memory ? "day1" : "day2"), world.target);
  fs::copy_file(world.dir / (newer_memory ? "day2" : "day1") + memory,
                world.target + memory, fs::copy_options::overwrite_existing);
  REQUIRE_OK(Refresh(world.source, world.target).status);
  REQUIRE(Get(world.target, "a") == "2");
  REQUIRE(Get(world.target, "y", "b") == "2");
  REQUIRE(Get(world.target, "z", "b") == "1");
}

uint64_t SequenceOf(const std::string& dir) {
  return OpenDb(dir, kTwo)->GetLatestSequenceNumber();
}

TEST_CASE("A memory is not believed beside a twin of the same id and sequence",
          "[transfer][refresh][evidence]") {
  TwoFamilies world;
  const std::string twin = world.dir / "twin";
  Copy(world.target, twin);
  Put(twin, "m", "foreign");
  REQUIRE_OK(Refresh(world.source, twin).status);
  const uint64_t there = SequenceOf(twin);
  Put(world.target, "a", "foreign");
  while (SequenceOf(world.target) < there) {
    Put(world.target, "n", "foreign");
  }
  REQUIRE(SequenceOf(world.target) == there);
  Compact(world.target);
  const std::string memory = "/sstferry.intervals";
  fs::copy_file(twin + memory, world.target + memory,
                fs::copy_options::overwrite_existing);
  REQUIRE_OK(Refresh(world.source, world.target).status);
  REQUIRE(Get(world.target, "a") == "1");
  REQUIRE(Get(world.target, "n") == "(none)");
}

// Makes the target say that its files are those it always knew.
void Forge(const std::string& dir) {
  IntervalFile record;
  bool found = false;
  rocksdb::FileSystem* const disk = rocksdb::FileSystem::Default().get();
  REQUIRE_OK(ReadIntervals(disk, dir, &found, &record));
  OpenDb db(dir, kTwo);
  const std::vector<FamilyHandle> families = {
      {"default", db.cf("default")}, {"b", db.cf("b")}};
  REQUIRE_OK(RecordTables(db.get(), families, &record));
  REQUIRE_OK(WriteIntervals(disk, dir, record));
}

TEST_CASE("What a verify finds different is healed by the next plain refresh",
          "[transfer][refresh][evidence]") {
  TwoFamilies world;
  Put(world.target, "n", "foreign", "b");
  Compact(world.target);
  Forge(world.target);
  PullOptions options;
  const Ferried believed = Refresh(world.source, world.target, options);
  REQUIRE_OK(believed.status);
  RequireBelieved(believed);
  Put(world.source, "a", "2");
  PullOptions verifying = options;
  verifying.verify = true;
  REQUIRE(Refresh(world.source, world.target, verifying).state() ==
          EndState::kCorrupt);
  SECTION("a plain one") {
    REQUIRE_OK(Refresh(world.source, world.target, options).status);
  }
  SECTION("the same command") {
    REQUIRE_OK(Refresh(world.source, world.target, verifying).status);
  }
  REQUIRE(Get(world.target, "n", "b") == "(none)");
  REQUIRE(Get(world.target, "a") == "2");
  REQUIRE_OK(Refresh(world.source, world.target, verifying).status);
}

TEST_CASE("A comparison by digest finds what nobody doubted",
          "[transfer][refresh][evidence]") {
  TwoFamilies world;
  Put(world.target, "n", "foreign", "b");
  Compact(world.target);
  Forge(world.target);
  PullOptions options;
  options.compare = CompareMode::kDigest;
  const Ferried compared = Refresh(world.source, world.target, options);
  REQUIRE_OK(compared.status);
  REQUIRE(compared.summary.parts_compared == 2);
  REQUIRE(Get(world.target, "n", "b") == "(none)");
}

// Does something once, when a refresh comes to a fault point.
class AtPoint {
 public:
  AtPoint(const std::string& point, const std::function<void()>& act) {
    TEST_SetFaultHook(
        [point, act, done = false](const std::string& name) mutable {
          if (name == point && !done) {
            done = true;
            act();
          }
        });
  }
  ~AtPoint() { TEST_SetFaultHook(nullptr); }
};

TEST_CASE("What an application wrote while a refresh ran is found by the next",
          "[transfer][refresh][evidence]") {
  TwoFamilies world;
  Put(world.source, "c", "new");
  Compact(world.source);
  {
    OpenDb db(world.target, kTwo);
    {
      const AtPoint meddle("Ingestor:Ingested", [&db] {
        db.Put("zzz", "foreign");
        db.Put("x", "foreign", "b");
        db.Flush();
        db.Compact();  // no file of level 0 tells of it
        db.Compact("b");
      });
      REQUIRE_OK(RefreshOpen(world.source, &db, {"default", "b"}).status);
    }
    REQUIRE_OK(RefreshOpen(world.source, &db, {"default", "b"}).status);
  }
  REQUIRE(Get(world.target, "zzz") == "(none)");
  REQUIRE(Get(world.target, "x", "b") == "(none)");
}

TEST_CASE("What one refresh of an open database proved the next believes",
          "[transfer][refresh][evidence]") {
  TwoFamilies world;
  Put(world.source, "c", "new");
  Compact(world.source);
  OpenDb db(world.target, kTwo);
  PullOptions options;
  options.compact = false;
  REQUIRE_OK(RefreshOpen(world.source, &db, {"default", "b"}, options).status);
  const Ferried again =
      RefreshOpen(world.source, &db, {"default", "b"}, options);
  REQUIRE_OK(again.status);
  RequireBelieved(again);
  // The MANIFEST tells what a compaction of an open database did,
  db.Compact();
  const Ferried compacted =
      RefreshOpen(world.source, &db, {"default", "b"}, options);
  RequireBelieved(compacted);
  // but not with which options, where they were set behind it.
  rocksdb::CompactRangeOptions forced;
  forced.bottommost_level_compaction =
      rocksdb::BottommostLevelCompaction::kForce;
  REQUIRE_OK(db->CompactRange(forced, nullptr, nullptr));
  REQUIRE_OK(db->SetOptions({{"disable_auto_compactions", "true"}}));
  const Ferried compared =
      RefreshOpen(world.source, &db, {"default", "b"}, options);
  REQUIRE_OK(compared.status);
  REQUIRE(compared.summary.parts_compared > 0);
  REQUIRE(compared.summary.parts_sent == 0);
  const Ferried last =
      RefreshOpen(world.source, &db, {"default", "b"}, options);
  RequireBelieved(last);
}

TEST_CASE("A chunk whose staging file went comes again",
          "[transfer][refresh][evidence]") {
  TwoFamilies world;
  Put(world.source, "a", "2");
  Put(world.source, "y", "2", "b");
  PullOptions options;
  {
    std::unique_ptr<Operation> pull;
    PullOptions first = options;
    first.mode = PullMode::kRefresh;
    first.source.directory = world.source;
    first.target_dir = world.target;
    first.snapshot_ttl = std::chrono::seconds(0);
    pull = MakePull(first);
    const AtPoint stop("Puller:TotalsAgreed", [&pull] { pull->Cancel(); });
    Summary summary;
    REQUIRE(EndStateOf(pull->Run(&summary)) == EndState::kCancelled);
  }
  const std::vector<std::string> staged =
      PathsWith(world.target + ".sstferry/staging", "");
  REQUIRE(staged.size() == 2);
  fs::remove(staged.front());
  const Ferried second = Refresh(world.source, world.target, options);
  INFO(second.message());
  REQUIRE_OK(second.status);
  REQUIRE(Get(world.target, "a") == "2");
  REQUIRE(Get(world.target, "y", "b") == "2");
}

}  // namespace
}  // namespace sstferry::test::refresh_exactness_test
