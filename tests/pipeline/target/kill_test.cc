// Pulls that are killed between two durable steps.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "pipeline/disk/durable.h"
#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::kill_test {
namespace {

namespace fs = std::filesystem;
constexpr int kKilled = 99;

std::string Setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Runs in another process: pulls, and exits at a fault point.
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
  REQUIRE_OK(RunPull(options).status);
}

// Pulls in a child process that exits at `point`.
void PullAndDie(const ScratchDir& dir, const std::string& point) {
  Process child(CaseOfThisProgram("child: a pull that dies at a fault point"),
                {{"SSTFERRY_TEST_POINT", point},
                 {"SSTFERRY_TEST_SOURCE", dir / "source"},
                 {"SSTFERRY_TEST_TARGET", dir / "target"}});
  const int code = child.Wait();
  INFO(point << ": " << child.out() << child.err());
  REQUIRE(code == kKilled);
}

SampleShape Small() {
  SampleShape shape;
  shape.entries = 600;
  return shape;
}

TEST_CASE("Pull killed before the rename leaves the target unchanged",
          "[target][crash]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source", Small());
  for (const char* point :
       {"Workspace:Created", "LaneClient:ChunkWritten",
        "LaneClient:ChunkSynced", "Ingestor:JournalAppended",
        "Ingestor:JournalSynced", "Ingestor:Ingested"}) {
    INFO(point);
    PullAndDie(dir, point);
    REQUIRE(fs::exists(dir / "target.sstferry"));
    REQUIRE_FALSE(fs::exists(dir / "target"));
  }
  const Summary summary = RunPull(PullFrom(dir / "source", dir / "target"));
  REQUIRE_OK(summary.status);
  REQUIRE(EntriesOf(dir / "target") == EntriesOf(dir / "source"));
  REQUIRE(NamesOf(dir.path()) == std::vector<std::string>{"source", "target"});
}

TEST_CASE("Pull killed after the rename is recognized as complete by the next",
          "[target][crash]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source", Small());
  PullAndDie(dir, "Workspace:Renamed");
  REQUIRE(fs::exists(dir / "target.sstferry"));
  const Summary again = RunPull(PullFrom(dir / "source", dir / "target"));
  INFO(again.status.ToString());
  REQUIRE(EndStateOf(again.status) == EndState::kRefused);
  REQUIRE(again.status.ToString().find("is complete (transfer ") !=
          std::string::npos);
  REQUIRE_FALSE(fs::exists(dir / "target.sstferry"));
  REQUIRE(EntriesOf(dir / "target") == EntriesOf(dir / "source"));
}

TEST_CASE("A leftover of another transfer does not make a target complete",
          "[target][crash]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source", Small());
  PullAndDie(dir, "Workspace:Renamed");
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

TEST_CASE("A pull succeeds even if its workspace cannot be removed",
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

}  // namespace
}  // namespace sstferry::kill_test
