// Tests clones of some column families: the files of the other families are not
// sent, and the clone's MANIFEST drops those families.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "pipeline/disk/durable.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/restored.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/test_db.h"

namespace sstferry::test::clone_families_test {
namespace {

namespace fs = std::filesystem;

constexpr char kUsers[] = "users";
constexpr char kSecret[] = "a \"secret\" [#1]";

Families Named(const std::vector<std::string>& names) {
  Families families;
  for (const std::string& name : names) {
    families.emplace_back(name, Quiet());
  }
  return families;
}

Families All() { return Named({"default", kUsers, kSecret}); }
Families Chosen() { return Named({"default", kUsers}); }

// Makes a source whose families each have tables, blob files and entries that
// are only in the WAL.
void MakeSource(const std::string& path) {
  Families families = All();
  for (auto& family : families) {
    family.options.enable_blob_files = true;
    family.options.min_blob_size = 1000;
  }
  rocksdb::DBOptions options;
  options.avoid_flush_during_shutdown = true;
  OpenDb db(path, families, options);
  for (const char* family : {"default", kUsers, kSecret}) {
    for (int i = 0; i < 50; ++i) {
      db.Put(NumberedKey(i), RandomBytes(i % 2 == 0 ? 100 : 2000, i), family);
    }
  }
  db.Flush();
  for (const char* family : {"default", kUsers, kSecret}) {
    db.Put("in the WAL", std::string("of ") + family, family);
  }
}

PullOptions Cloning() {
  PullOptions options;
  options.method = PullMethod::kClone;
  options.selection.families = {"default", kUsers};
  return options;
}

std::string OptionsTextIn(const std::string& directory) {
  std::string newest;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string path = entry.path().string();
    if (entry.path().filename().string().starts_with("OPTIONS-")) {
      newest = std::max(newest, path);
    }
  }
  std::ifstream in(newest, std::ios::binary);
  REQUIRE(in.good());
  return BytesIn(in);
}

void RequireChosen(const ScratchDir& dir) {
  std::vector<std::string> names;
  REQUIRE_OK(rocksdb::DB::ListColumnFamilies(rocksdb::DBOptions(),
                                             dir / "target", &names));
  REQUIRE(names == std::vector<std::string>{"default", kUsers});
  const std::string text = OptionsTextIn(dir / "target");
  REQUIRE(text.find("[CFOptions \"users\"]") != std::string::npos);
  REQUIRE(text.find("secret") == std::string::npos);
  for (const char* family : {"default", kUsers}) {
    REQUIRE(EntriesOf(dir / "target", Chosen(), family) ==
            EntriesOf(dir / "source", All(), family));
    REQUIRE(EntriesOf(dir / "target", Chosen(), family).size() == 51);
  }
}

}  // namespace

TEST_CASE("A clone of some families has their files and no file of others",
          "[transfer][clone][families]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  const uint64_t tables = FileCount(dir / "source", ".sst");
  const uint64_t blobs = FileCount(dir / "source", ".blob");
  PullOptions options = Cloning();
  options.verify = true;
  Ferried moved;
  SECTION("of a directory") {
    moved = Ferry(dir / "source", dir / "target", options);
  }
  SECTION("of a server") {
    moved = Ferry(dir / "source", dir / "target", options, Via::kTcp);
  }
  SECTION("of an archive") {
    InitArchive(dir / "archive");
    PushTo(dir / "archive", dir / "source");
    moved = RestoreFrom(dir / "archive", dir / "target", options);
  }
  INFO(moved.message());
  REQUIRE_OK(moved.status);
  REQUIRE(moved.summary.verified);
  REQUIRE(moved.summary.column_families ==
          std::vector<std::string>{"default", kUsers});
  REQUIRE(FileCount(dir / "target", ".sst") == tables / 3 * 2);
  REQUIRE(FileCount(dir / "target", ".blob") == blobs / 3 * 2);
  REQUIRE(moved.notes_mention("may hold keys and values of families that were "
                              "not chosen"));
  RequireChosen(dir);
  // A family of the same name that is made later does not get the old entries
  // that the WAL still holds.
  {
    OpenDb db(dir / "target", Chosen());
    db.Create({kSecret, Quiet()});
    db.Put("new", "value", kSecret);
  }
  REQUIRE(EntriesOf(dir / "target", All(), kSecret).size() == 1);
}

TEST_CASE("Auto clones some families if default is among them, and sends "
          "chunks otherwise",
          "[transfer][clone][families][method]") {
  const ScratchDir dir;
  {
    OpenDb db(dir / "source", All());
    for (int i = 0; i < 100; ++i) {
      db.Put(NumberedKey(i), RandomBytes(1'000'000, i), kUsers);
      db.Put(NumberedKey(i), RandomBytes(1000, i));
      db.Put(NumberedKey(i), RandomBytes(1000, i), kSecret);
    }
    db.Flush();
  }
  PullOptions options;
  options.selection.families = {"default", kUsers};
  Ferried moved = FerryByRule(dir / "source", dir / "target", options);
  INFO(moved.message());
  REQUIRE_OK(moved.status);
  REQUIRE(moved.summary.method == "clone");
  REQUIRE_FALSE(moved.notes_mention("not chosen"));  // the WALs are empty
  options.selection.families = {kSecret};
  moved = FerryByRule(dir / "source", dir / "chunks", options);
  REQUIRE_OK(moved.status);
  REQUIRE(moved.summary.method == "ingest");
  REQUIRE(moved.summary.method_reason.find("'default'") != std::string::npos);
  options.method = PullMethod::kClone;
  moved = Ferry(dir / "source", dir / "refused", options);
  REQUIRE(moved.state() == EndState::kRefused);
  REQUIRE(moved.message().find("add --cf default") != std::string::npos);
}

TEST_CASE("A clone of a family that is missing in the source is refused",
          "[transfer][clone][families][refused]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  PullOptions options = Cloning();
  options.selection.families.push_back("absent");
  const Ferried moved =
      Ferry(dir / "source", dir / "target", options, Via::kTcp);
  INFO(moved.message());
  REQUIRE(moved.state() == EndState::kRefused);
  REQUIRE(moved.message().find("'absent' is not in the source") !=
          std::string::npos);
}

TEST_CASE("A swap with the same choice of families reuses their files, and "
          "exchanges nothing if they did not change",
          "[transfer][clone][families][reuse]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  REQUIRE_OK(Ferry(dir / "source", dir / "target", Cloning()).status);
  PullOptions swap = Cloning();
  swap.source.directory = dir / "source";
  swap.target_dir = dir / "target";
  swap.mode = PullMode::kSwap;
  swap.method = PullMethod::kAuto;  // the replica stays a clone
  swap.verify = true;
  Summary night;
  REQUIRE_OK(MakePull(swap)->Run(&night));
  REQUIRE(night.method == "clone");
  REQUIRE_FALSE(night.exchanged);
  {
    OpenDb db(dir / "source", All());
    db.Put("new", "value", kUsers);
    db.Flush();
  }
  const rocksdb::Status status = MakePull(swap)->Run(&night);
  INFO(status.ToString());
  REQUIRE_OK(status);
  REQUIRE(night.exchanged);
  REQUIRE(night.verified);
  REQUIRE(night.files_reused >= 4);
  for (const char* family : {"default", kUsers}) {
    REQUIRE(EntriesOf(dir / "target", Chosen(), family) ==
            EntriesOf(dir / "source", All(), family));
  }
}

TEST_CASE("A verify of some families compares the files of a clone of them",
          "[transfer][clone][families][verify]") {
  const ScratchDir dir;
  MakeSource(dir / "source");
  REQUIRE_OK(Ferry(dir / "source", dir / "target", Cloning()).status);
  VerifyOptions options;
  options.left.directory = dir / "source";
  options.right.directory = dir / "target";
  options.selection.families = {"default", kUsers};
  Summary summary;
  REQUIRE_OK(MakeVerify(options)->Run(&summary));
  REQUIRE(summary.compared == "files");
  REQUIRE(summary.files_compared == 4);
  options.selection.families = {kUsers};
  REQUIRE_OK(MakeVerify(options)->Run(&summary));
  REQUIRE(summary.compared == "files");
  REQUIRE(summary.files_compared == 2);
  // All families differ: the source has one more.
  options.selection.families.clear();
  REQUIRE(EndStateOf(MakeVerify(options)->Run(&summary)) ==
          EndState::kDifferent);
}

namespace {

std::string Setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

TEST_CASE("child: a killed clone of some families", "[.child]") {
  if (Setting("SSTFERRY_TEST_POINT").empty()) {
    return;
  }
  PullOptions options = Cloning();
  options.source.directory = Setting("SSTFERRY_TEST_ROOT") + "/source";
  options.target_dir = Setting("SSTFERRY_TEST_ROOT") + "/target";
  TEST_SetFaultHook([](const std::string& name) {
    if (name == Setting("SSTFERRY_TEST_POINT")) {
      raise(SIGKILL);
    }
  });
  Summary summary;
  REQUIRE_OK(MakePull(options)->Run(&summary));
}

TEST_CASE("A clone of some families that is killed while it finishes is "
          "resumed",
          "[transfer][clone][families][resume]") {
  const std::string point =
      GENERATE("UnitStore:RecordsSynced", "FinishClone:OptionsWritten",
               "FinishClone:ManifestWritten", "CloneTarget:CurrentWritten");
  INFO(point);
  const ScratchDir dir;
  MakeSource(dir / "source");
  Process child(CaseOfThisProgram("child: a killed clone of some families"),
                {{"SSTFERRY_TEST_POINT", point},
                 {"SSTFERRY_TEST_ROOT", dir.path()}});
  REQUIRE(child.Wait() == 128 + SIGKILL);
  REQUIRE_FALSE(fs::exists(dir / "target"));
  // A command with another choice of families does not resume it.
  PullOptions options = Cloning();
  options.source.directory = dir / "source";
  options.target_dir = dir / "target";
  options.selection.families = {"default", kSecret};
  Summary summary;
  REQUIRE(EndStateOf(MakePull(options)->Run(&summary)) == EndState::kRefused);
  options.selection.families = {"default", kUsers};
  const rocksdb::Status status = MakePull(options)->Run(&summary);
  INFO(status.ToString());
  REQUIRE_OK(status);
  REQUIRE(summary.chunks_resumed > 0);
  RequireChosen(dir);
}

}  // namespace sstferry::test::clone_families_test
