// A pull killed at each place between two durable steps.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "pipeline/disk/durable.h"
#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry {
namespace {

namespace fs = std::filesystem;
constexpr int kKilled = 99;

std::string Setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Run in a process of its own: pulls, and dies at a fault point.
TEST_CASE("child: a pull that dies at a fault point", "[.child]") {
  const std::string point = Setting("SSTFERRY_TEST_POINT");
  if (point.empty()) {
    return;
  }
  TEST_SetFaultHook([&point](const std::string& name) {
    if (name == point) {
      _exit(kKilled);
    }
  });
  PullOptions options = PullFrom(Setting("SSTFERRY_TEST_SOURCE"),
                                 Setting("SSTFERRY_TEST_TARGET"));
  options.replace = Setting("SSTFERRY_TEST_REPLACE") == "yes";
  REQUIRE_OK(RunPull(options).status);
}

// Pulls in a child that dies at `point`.
void PullAndDie(const ScratchDir& dir, const std::string& point,
                bool replace) {
  Process child(CaseOfThisProgram("child: a pull that dies at a fault point"),
                {{"SSTFERRY_TEST_POINT", point},
                 {"SSTFERRY_TEST_SOURCE", dir / "source"},
                 {"SSTFERRY_TEST_TARGET", dir / "target"},
                 {"SSTFERRY_TEST_REPLACE", replace ? "yes" : "no"}});
  const int code = child.Wait();
  INFO(point << ": " << child.out() << child.err());
  REQUIRE(code == kKilled);
}

SampleShape Small() {
  SampleShape shape;
  shape.entries = 600;
  return shape;
}

TEST_CASE("Pull killed before the rename leaves the target as it was",
          "[target][crash]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source", Small());
  const bool replace = GENERATE(false, true);
  if (replace) {
    fs::create_directory(dir / "target");
    WriteBytes(dir / "target/content", "old");
  }
  for (const char* point :
       {"Workspace:Created", "LaneClient:ChunkWritten",
        "LaneClient:ChunkSynced", "Ingestor:JournalAppended",
        "Ingestor:JournalSynced", "Ingestor:Ingested",
        "Workspace:ExchangeRecorded"}) {
    INFO(point);
    if (!replace && std::string(point) == "Workspace:ExchangeRecorded") {
      continue;
    }
    PullAndDie(dir, point, replace);
    REQUIRE(fs::exists(dir / "target.sstferry"));
    REQUIRE(fs::exists(dir / "target") == replace);
    REQUIRE((!replace || BytesOf(dir / "target/content") == "old"));
  }
  PullOptions options = PullFrom(dir / "source", dir / "target");
  options.replace = replace;
  const Summary summary = RunPull(options);
  REQUIRE_OK(summary.status);
  REQUIRE(EntriesOf(dir / "target") == EntriesOf(dir / "source"));
  std::vector<std::string> names{"source", "target"};
  if (replace) {
    names.push_back("target.old-" + summary.transfer_id);
    REQUIRE(BytesOf(summary.replaced + "/content") == "old");
  }
  REQUIRE(NamesOf(dir.path()) == names);
}

TEST_CASE("Pull killed after the rename is known for complete by the next",
          "[target][crash]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source", Small());
  const std::string point =
      GENERATE(as<std::string>(), "Workspace:Renamed",
               "replace Workspace:Renamed", "replace Workspace:Exchanged");
  const bool replace = point.rfind("replace ", 0) == 0;
  if (replace) {
    fs::create_directory(dir / "target");
    WriteBytes(dir / "target/content", "old");
  }
  PullAndDie(dir, replace ? point.substr(8) : point, replace);
  REQUIRE(fs::exists(dir / "target.sstferry"));
  const Summary again = RunPull(PullFrom(dir / "source", dir / "target"));
  INFO(again.status.ToString());
  REQUIRE(EndStateOf(again.status) == EndState::kRefused);
  REQUIRE(again.status.ToString().find("is complete: transfer ") !=
          std::string::npos);
  REQUIRE_FALSE(fs::exists(dir / "target.sstferry"));
  REQUIRE(EntriesOf(dir / "target") == EntriesOf(dir / "source"));
  size_t olds = 0;
  for (const std::string& name : NamesOf(dir.path())) {
    olds += fs::exists(dir / (name + "/content")) ? 1 : 0;
  }
  REQUIRE(olds == (replace ? 1 : 0));
}

TEST_CASE("A leftover of another transfer does not make a target complete",
          "[target][crash]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source", Small());
  PullAndDie(dir, "Workspace:Renamed", false);
  const bool last_transfer = GENERATE(true, false);
  if (last_transfer) {
    WriteBytes(dir / "target/last_transfer.json",
               "{\"transfer_id\": \"" + std::string(32, 'a') + "\"}");
  } else {
    WriteBytes(dir / "target/last_transfer.json", "nothing");
  }
  const Summary again = RunPull(PullFrom(dir / "source", dir / "target"));
  INFO(again.status.ToString());
  REQUIRE(EndStateOf(again.status) == EndState::kRefused);
  REQUIRE(again.status.ToString().find("is not empty") != std::string::npos);
  REQUIRE(fs::exists(dir / "target.sstferry"));
}

TEST_CASE("A workspace that cannot be removed does not fail a whole target",
          "[target][crash]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source", Small());
  TEST_SetFaultHook([&dir](const std::string& name) {
    if (name == "Workspace:Renamed") {
      WriteBytes(dir / "target.sstferry/stranger", "");
    }
  });
  const Summary summary = RunPull(PullFrom(dir / "source", dir / "target"));
  TEST_SetFaultHook(nullptr);
  REQUIRE_OK(summary.status);
  REQUIRE(EntriesOf(dir / "target") == EntriesOf(dir / "source"));
  REQUIRE_FALSE(summary.notes.empty());
  REQUIRE(summary.notes.back().find(dir / "target.sstferry") !=
          std::string::npos);
}

TEST_CASE("Pull killed between exchange and rename is completed by the next",
          "[target][crash]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source", Small());
  fs::create_directory(dir / "target");
  WriteBytes(dir / "target/content", "old");
  PullAndDie(dir, "Workspace:Exchanged", true);
  REQUIRE(EntriesOf(dir / "target") == EntriesOf(dir / "source"));
  REQUIRE(BytesOf(dir / "target.sstferry/db/content") == "old");
  std::vector<std::string> log;
  PullOptions options = PullFrom(dir / "source", dir / "target");
  options.replace = true;
  options.log = [&log](LogLevel, const std::string& line) {
    log.push_back(line);
  };
  const Summary summary = RunPull(options);
  REQUIRE_OK(summary.status);
  // Both what the killed pull and what this one replaced are there.
  size_t olds = 0;
  for (const std::string& name : NamesOf(dir.path())) {
    if (name.rfind("target.old-", 0) == 0) {
      olds++;
      const bool first = dir / name != summary.replaced;
      REQUIRE(fs::exists(dir / (name + "/content")) == first);
    }
  }
  REQUIRE(olds == 2);
  REQUIRE_FALSE(fs::exists(dir / "target.sstferry"));
}

}  // namespace
}  // namespace sstferry
