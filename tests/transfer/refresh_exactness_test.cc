// Tests databases that only look unchanged. A refresh that trusted the
// appearance would be silently wrong.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "pipeline/disk/durable.h"
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

// Requires that everything was compared and nothing was sent.
void RequireEqual(const Ferried& refreshed) {
  REQUIRE_OK(refreshed.status);
  REQUIRE(refreshed.summary.parts_unchanged == refreshed.summary.parts);
}

// Changes the name of the comparator of "b", so that the next open does not
// know the order.
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

// Writes an SST file with one entry and ingests a copy of it.
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

TEST_CASE("Entries in the memory of a source that could not flush are compared",
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
  RequireEqual(Refresh(source, dir / "target", Selecting("default")));
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

TEST_CASE("A file that is ingested a second time wins over writes in between",
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

TEST_CASE("A merge operator with other options reads different values from the "
          "same files",
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
      db.Flush();  // otherwise the operands are merged into one
    }
    db.Put("other", "value");
    db.Flush();
  }
  REQUIRE_OK(Refresh(source, dir / "target").status);
  REQUIRE(EntriesOf(dir / "target", OneFamily())[0].second == "1,2,3");
  RequireEqual(Refresh(source, dir / "target"));
  { OpenDb db(source, with_delimiter("+")); }  // OPTIONS name the operator now
  const Ferried refreshed = Refresh(source, dir / "target");
  REQUIRE_OK(refreshed.status);
  CHECK(refreshed.summary.parts_compared > 0);
  REQUIRE(EntriesOf(dir / "target", OneFamily())[0].second == "1+2+3");
  RequireEqual(Refresh(source, dir / "target"));
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

TEST_CASE("A refresh of one family leaves the others to the next refresh",
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
  RequireEqual(again);
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

TEST_CASE("Entries that the target's own compactions dropped are sent again",
          "[transfer][refresh][evidence]") {
  TwoFamilies world;
  {
    OpenDb db(world.target, kTwo);
    // Drops entries without a new sequence number, as a compaction filter does.
    REQUIRE_OK(rocksdb::DeleteFilesInRange(db.get(), db.cf("b"), nullptr,
                                           nullptr));
  }
  REQUIRE(Get(world.target, "z", "b") == "(none)");
  REQUIRE_OK(Refresh(world.source, world.target).status);
  REQUIRE(Get(world.target, "z", "b") == "1");
}

// Calls a function once, when a refresh reaches a fault point.
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

TEST_CASE("Writes of an application during a refresh are found by the next "
          "refresh",
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
        db.Compact();  // no file in level 0 shows the writes
        db.Compact("b");
      });
      REQUIRE_OK(RefreshOpen(world.source, &db, {"default", "b"}).status);
    }
    REQUIRE_OK(RefreshOpen(world.source, &db, {"default", "b"}).status);
  }
  REQUIRE(Get(world.target, "zzz") == "(none)");
  REQUIRE(Get(world.target, "x", "b") == "(none)");
}

TEST_CASE("A chunk whose staging file is gone is sent again",
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
