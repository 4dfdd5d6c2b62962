// The time at which a snapshot was taken, and --max-age for resumes.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <mutex>

#include <nlohmann/json.hpp>

#include "pipeline/pull/target_state.h"
#include "tests/pipeline/target/resume_support.h"
#include "tests/support/catch.h"
#include "tests/support/replica_world.h"
#include "tests/support/sample_database.h"

namespace sstferry::snapshot_age_test {
namespace {

using rocksdb::Status;

uint64_t Now() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(
          std::chrono::system_clock::now().time_since_epoch())
          .count());
}

// A source with a clock that the test sets.
struct ClockedSource {
  explicit ClockedSource(const std::string& directory)
      : directory_(directory) {
    Start();
  }
  void Start() {
    ServeOptions options = ServeAndHold(directory_);
    options.leases.wall_seconds = [this] {
      return is_right ? Now() : clock.load();
    };
    server = std::make_unique<TestServer>(options);
  }
  const std::string directory_;
  std::atomic<uint64_t> clock{Now()};
  std::atomic<bool> is_right{false};  // uses the system's clock
  std::unique_ptr<TestServer> server;
};

TEST_CASE("A pull reports everywhere when its snapshot was taken",
          "[target][age]") {
  REQUIRE(Rfc3339(0).empty());
  REQUIRE(Rfc3339(1'700'000'000) == "2023-11-14T22:13:20Z");
  REQUIRE(Rfc3339(253'402'300'799) == "9999-12-31T23:59:59Z");
  REQUIRE(Rfc3339(253'402'300'800).empty());
  REQUIRE(Rfc3339(UINT64_MAX).empty());
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  ClockedSource source(dir / "source");
  source.clock = 1'700'000'000;
  PullOptions options = PullFrom(source.server->address(), dir / "target");
  const Summary cut = PullAndCancel(options, "Ingestor:Ingested", 2);
  REQUIRE(cut.snapshot_taken_seconds == 1'700'000'000);
  TargetState state;
  bool is_target = false;
  REQUIRE_OK(ReadTargetState(dir / "target", &state, &is_target));
  REQUIRE(state.unfinished->snapshot_taken_at == "2023-11-14T22:13:20Z");
  // Resumed later, by another process of the source.
  source.clock += 1000;
  source.server.reset();
  source.Start();
  options.source = AddressAt(source.server->address());
  const Summary summary = RunPull(options);
  REQUIRE_OK(summary.status);
  REQUIRE(summary.chunks_resumed > 0);
  REQUIRE(summary.snapshot_taken_seconds == 1'700'000'000);
  const auto last = nlohmann::json::parse(
      BytesOf(dir / "target" + "/last_transfer.json"));
  REQUIRE(last["snapshot_taken_at"] == "2023-11-14T22:13:20Z");
  REQUIRE(last["snapshot_taken_seconds"] == 1'700'000'000);
  REQUIRE_OK(ReadTargetState(dir / "target", &state, &is_target));
  REQUIRE(state.complete->snapshot_taken_at == "2023-11-14T22:13:20Z");
}

TEST_CASE("A pull warns of a source whose clock is wrong by five seconds",
          "[target][age]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  ClockedSource source(dir / "source");
  int target = 0;
  for (const auto& [seconds, words] :
       // Half an hour more than "2 h", because the pull itself takes some time.
       {std::pair(9000, " ahead of"), std::pair(-9000, " behind"),
        std::pair(0, "")}) {
    source.clock = Now() + static_cast<uint64_t>(seconds);
    source.is_right = seconds == 0;
    PullOptions options = PullFrom(source.server->address(),
                                   dir / ("target" + std::to_string(++target)));
    std::mutex mu;
    std::string told;
    options.log = [&](LogLevel level, const std::string& text) {
      const std::lock_guard<std::mutex> lock(mu);
      if (level == LogLevel::kWarning &&
          text.find("the clock of the source") != std::string::npos) {
        told += text;
      }
    };
    REQUIRE_OK(RunPull(options).status);
    INFO(told);
    REQUIRE(told.empty() == (seconds == 0));
    REQUIRE((seconds == 0 || told.find("is 2 h ") != std::string::npos));
    REQUIRE(told.find(words) != std::string::npos);
    // The recorded age is never less than the time since the transfer.
    TargetState state;
    bool is_target = false;
    REQUIRE_OK(ReadTargetState(options.target_dir, &state, &is_target));
    REQUIRE(*state.complete->as_of_seconds <= Now());
    REQUIRE((state.complete->source_ahead_seconds > 7200) == (seconds > 0));
    REQUIRE((*state.complete->age_seconds >= 9000) == (seconds < 0));
  }
}

TEST_CASE("A pull is resumed unless its snapshot is older than --max-age",
          "[target][age]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  ClockedSource source(dir / "source");
  source.clock -= 7200;
  PullOptions options = PullFrom(source.server->address(), dir / "target");
  const Summary cut = PullAndCancel(options, "Ingestor:Ingested", 2);
  source.clock += 7200;
  SECTION("not older") {
    options.max_age = std::chrono::hours(3);
    const Summary summary = PullToTheEnd(dir, options);
    REQUIRE(summary.transfer_id == cut.transfer_id);
    REQUIRE(summary.chunks_resumed > 0);
  }
  SECTION("older") {
    options.max_age = std::chrono::hours(1);
    const Summary summary = PullToTheEnd(dir, options);
    REQUIRE(summary.transfer_id != cut.transfer_id);
    REQUIRE(summary.chunks_resumed == 0);
    REQUIRE(NotesMention(summary, "not within the last 3600 s"));
    // The source no longer retains the old snapshot.
    source.server->Stop();
    REQUIRE(NamesOf(dir.path()) ==
            std::vector<std::string>{"source", "target"});
  }
}

TEST_CASE("A pull is not resumed if the age of its snapshot is unknown",
          "[target][age]") {
  const uint64_t ahead = GENERATE(as<uint64_t>(), 200, 86'400);
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  ClockedSource source(dir / "source");
  source.clock += ahead;
  PullOptions options = PullFrom(source.server->address(), dir / "target");
  const Summary cut = PullAndCancel(options, "Ingestor:Ingested", 2);
  source.clock -= ahead;
  options.max_age = std::chrono::hours(20);
  const Summary summary = PullToTheEnd(dir, options);
  REQUIRE((summary.transfer_id == cut.transfer_id) == (ahead == 200));
  REQUIRE(NotesMention(summary, "not within the last 72000 s") ==
          (ahead != 200));
}

TEST_CASE("A swap does not exchange a database that is older than --max-age",
          "[target][age][swap]") {
  ReplicaWorld world;
  REQUIRE_OK(RunPull(world.Options()).status);
  ClockedSource source(world.source());
  PullOptions options = world.Options();
  options.source = AddressAt(source.server->address());
  options.max_age = std::chrono::hours(20);
  world.ChangeSource();
  {
    // The application is not stopped, so nothing is exchanged.
    ServingApplication application(world.target());
    source.clock -= 24 * 3600;
    const Summary busy = RunPull(options);
    REQUIRE(EndStateOf(busy.status) == EndState::kBusy);
    source.clock += 24 * 3600;
  }
  const auto of_last_night = EntriesOf(world.source());
  world.ChangeSource();
  const bool drops = GENERATE(true, false);
  options.max_age = drops ? options.max_age : std::chrono::seconds(0);
  const Summary summary = RunPull(options);
  INFO(summary.status.ToString());
  REQUIRE_OK(summary.status);
  REQUIRE(EntriesOf(world.target()) ==
          (drops ? EntriesOf(world.source()) : of_last_night));
  REQUIRE(NotesMention(summary, "not within the last") == drops);
  REQUIRE(world.calls().back() == "after exchanged");
}

}  // namespace
}  // namespace sstferry::snapshot_age_test
