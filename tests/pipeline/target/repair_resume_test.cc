// Repairs of listed ranges that end in the middle and are started again.
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
  // Neither a refresh nor a repair of other ranges resumes it.
  PullOptions other = world.options;
  other.ranges.pop_back();
  Summary summary = RunPull(other);
  REQUIRE(EndStateOf(summary.status) == EndState::kRefused);
  REQUIRE(MessageOf(summary.status).find("an unfinished repair of other "
                                         "ranges; --restart") !=
          std::string::npos);
  other.ranges.clear();
  REQUIRE(EndStateOf(RunPull(other).status) == EndState::kRefused);

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
