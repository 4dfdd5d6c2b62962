// Repairs of listed ranges that end in the middle and are started again.
#include <algorithm>
#include <filesystem>

#include "tests/pipeline/target/resume_support.h"
#include "tests/support/catch.h"
#include "tests/support/test_db.h"

namespace sstferry {
namespace {

namespace fs = std::filesystem;

using test::NumberedKey;

// A replica that lost keys in several ranges.
struct RepairWorld {
  ScratchDir dir;
  std::unique_ptr<TestServer> server;
  PullOptions options;

  RepairWorld() {
    {
      test::OpenDb db(dir / "source", test::OneFamily(test::Quiet()));
      for (uint64_t i = 0; i < 4000; ++i) {
        db.Put(NumberedKey(i), test::RandomBytes(200, i));
      }
      db.Flush();
    }
    server = std::make_unique<TestServer>(ServeAndHold(dir / "source"));
    options = PullFrom(server->address(), dir / "target");
    options.mode = PullMode::kRefresh;
    REQUIRE_OK(RunPull(options).status);
    test::OpenDb target(dir / "target", test::OneFamily(test::Quiet()));
    for (uint64_t i = 0; i < 4000; i += 1000) {
      for (uint64_t k = i; k < i + 300; ++k) {
        target.Delete(NumberedKey(k));
      }
      options.ranges.push_back(
          {"default", {NumberedKey(i), NumberedKey(i + 300)}});
    }
    target.Flush();
  }
};

TEST_CASE("A repair killed at any step is resumed with the same ranges alone",
          "[target][repair][crash]") {
  struct Death {
    const char* point;
    int nth;
    uint64_t at_least;  // chunks that the next one need not fetch
  };
  const Death death = GENERATE(
      Death{"Puller:HeadWritten", 1, 0}, Death{"Ingestor:JournalSynced", 2, 2},
      Death{"Puller:TotalsAgreed", 1, 4}, Death{"Ingestor:Ingested", 1, 4},
      Death{"Refresh:AllIngested", 1, 4}, Death{"Refresh:CoversWritten", 1, 4});
  INFO(death.point);
  RepairWorld world;
  PullAndDie(world.server->address(), world.options, death.point, death.nth);
  REQUIRE(fs::exists(world.dir / "target.sstferry/journal"));
  // A repair of other ranges does not resume it.
  PullOptions other = world.options;
  other.ranges.pop_back();
  Summary summary = RunPull(other);
  REQUIRE(EndStateOf(summary.status) == EndState::kRefused);
  REQUIRE(MessageOf(summary.status).find("an unfinished repair of other "
                                         "ranges; --restart") !=
          std::string::npos);

  summary = RunPull(world.options);
  INFO(summary.status.ToString());
  REQUIRE_OK(summary.status);
  REQUIRE(summary.chunks_resumed >= death.at_least);
  REQUIRE(EntriesOf(world.dir / "target") == EntriesOf(world.dir / "source"));
  REQUIRE_FALSE(fs::exists(world.dir / "target.sstferry"));
  other.ranges.clear();
  summary = RunPull(other);
  REQUIRE_OK(summary.status);
  REQUIRE(EntriesOf(world.dir / "target") == EntriesOf(world.dir / "source"));
}

TEST_CASE("A refresh takes the place of a repair that was killed at any step",
          "[target][repair][crash]") {
  struct Death {
    const char* point;
    int nth;
  };
  const Death death = GENERATE(
      Death{"Puller:HeadWritten", 1}, Death{"Ingestor:JournalSynced", 2},
      Death{"Puller:TotalsAgreed", 1}, Death{"Ingestor:Ingested", 1},
      Death{"Refresh:AllIngested", 1}, Death{"Refresh:CoversWritten", 1},
      Death{"Refresh:CompactionRecorded", 1});
  const Visibility visibility = GENERATE(Visibility::kAll, Visibility::kChunk);
  INFO(death.point);
  RepairWorld world;
  PullAndDie(world.server->address(), world.options, death.point, death.nth);
  PullOptions refresh = world.options;
  refresh.ranges.clear();
  refresh.visibility = visibility;
  const Summary summary = RunPull(refresh);
  INFO(summary.status.ToString());
  REQUIRE_OK(summary.status);
  REQUIRE(summary.state == "complete");
  REQUIRE(summary.chunks_resumed == 0);
  const bool tells = std::any_of(
      summary.notes.begin(), summary.notes.end(), [](const std::string& note) {
        return note.find("an unfinished repair of listed ranges was dropped") !=
               std::string::npos;
      });
  REQUIRE(tells);
  REQUIRE(EntriesOf(world.dir / "target") == EntriesOf(world.dir / "source"));
  REQUIRE_FALSE(fs::exists(world.dir / "target.sstferry"));
}

TEST_CASE("A repair shares the latest snapshot of its source",
          "[target][repair][share]") {
  RepairWorld world;
  PullOptions other = PullFrom(world.server->address(), world.dir / "other");
  other.latest_snapshot = true;
  const Summary shared = RunPull(other);
  REQUIRE_OK(shared.status);
  PullOptions repair = world.options;
  repair.latest_snapshot = true;
  const Summary summary = RunPull(repair);
  INFO(summary.status.ToString());
  REQUIRE_OK(summary.status);
  REQUIRE(summary.state == "repaired");
  REQUIRE(summary.ranges_compared > 0);
  REQUIRE(summary.ranges_not_compared > 0);
  REQUIRE(EntriesOf(world.dir / "target") == EntriesOf(world.dir / "source"));
  PullOptions refresh = world.options;
  refresh.ranges.clear();
  REQUIRE_OK(RunPull(refresh).status);
  REQUIRE(EntriesOf(world.dir / "target") == EntriesOf(world.dir / "source"));
}

TEST_CASE("A repair that was stopped leaves a target that an asked restart "
          "refreshes",
          "[target][repair]") {
  RepairWorld world;
  (void)PullAndCancel(world.options, "LaneClient:ChunkSynced", 1);
  PullOptions refresh = world.options;
  refresh.ranges.clear();
  refresh.restart = true;
  const Summary summary = RunPull(refresh);
  REQUIRE_OK(summary.status);
  REQUIRE(summary.state == "complete");
  REQUIRE(EntriesOf(world.dir / "target") == EntriesOf(world.dir / "source"));
}

}  // namespace
}  // namespace sstferry
