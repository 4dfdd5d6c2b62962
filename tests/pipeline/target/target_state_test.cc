// The state of a TARGET_DIR, as status reads it.
#include <algorithm>
#include <filesystem>

#include "format/limits.h"
#include "pipeline/disk/durable.h"
#include "pipeline/pull/pull_identity.h"
#include "pipeline/pull/target_state.h"
#include "tests/pipeline/target/resume_support.h"
#include "tests/support/catch.h"
#include "tests/support/test_db.h"

namespace sstferry::target_state_test {
namespace {

namespace fs = std::filesystem;

TargetState StateOf(const std::string& target, bool expected = true) {
  TargetState state;
  bool is_target = !expected;
  REQUIRE_OK(ReadTargetState(target, &state, &is_target));
  REQUIRE(is_target == expected);
  return state;
}

// Returns every name below a directory, with its modification time and size.
// Leaves out the source's snapshot, whose lease may be written at any time.
std::vector<std::string> Everything(const std::string& directory) {
  std::vector<std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.path().string().find(".sstferry-snapshot-") !=
        std::string::npos) {
      continue;
    }
    all.push_back(entry.path().string() + " " +
                  std::to_string(
                      entry.last_write_time().time_since_epoch().count()) +
                  (entry.is_regular_file()
                       ? " " + std::to_string(entry.file_size())
                       : ""));
  }
  std::sort(all.begin(), all.end());
  return all;
}

constexpr char kCommand[] =
    "sstferry pull sst://host/db '/a target' --tls-cert 'my cert'";

struct Bench {
  Bench() {
    SampleShape shape;
    shape.entries = 8000;
    MakeSampleDatabase(dir / "source", shape);
    server = std::make_unique<TestServer>(ServeAndHold(dir / "source"));
    options = PullFrom(server->address(), dir / "a target");
    options.command_line = kCommand;
  }
  ScratchDir dir;
  std::unique_ptr<TestServer> server;
  PullOptions options;
};

TEST_CASE("A directory that no pull made is not a target", "[target][status]") {
  ScratchDir dir;
  StateOf(dir / "nothing", false);
  fs::create_directories(dir / "x.sstferry");
  StateOf(dir / "x", false);
  WriteBytes(dir / "x.sstferry/lock", "somebody's\n");
  StateOf(dir / "x", false);
}

TEST_CASE(
    "The state of an unfinished pull has its progress and the next command",
    "[target][status]") {
  Bench bench;
  bench.options.selection.interval.end = "zz top";
  const Summary summary =
      PullAndCancel(bench.options, "Ingestor:Ingested", 3);
  const std::string target = bench.options.target_dir;
  const std::vector<std::string> before = Everything(bench.dir.path());
  const TargetState state = StateOf(target);
  REQUIRE(Everything(bench.dir.path()) == before);
  REQUIRE_FALSE(state.complete.has_value());
  REQUIRE(state.unfinished.has_value());
  const UnfinishedPull& pull = *state.unfinished;
  REQUIRE_FALSE(pull.running);
  REQUIRE(pull.transfer_id == summary.transfer_id);
  REQUIRE(pull.source == bench.options.source.ToString());
  REQUIRE(pull.snapshot_sequence == summary.snapshot_sequence);
  REQUIRE(pull.chunks >= 3);
  REQUIRE(pull.sst_bytes > 0);
  REQUIRE(pull.percent() > 0);
  REQUIRE(pull.percent() < 100);
  REQUIRE_FALSE(pull.all_received);
  REQUIRE(pull.damage.empty());
  REQUIRE(pull.snapshot_taken_at == Rfc3339(summary.snapshot_taken_seconds));
  REQUIRE(state.next == kCommand);
}

TEST_CASE("A running pull is distinguished from a stopped one",
          "[target][status]") {
  Bench bench;
  TargetState state;
  TEST_SetFaultHook([&](const std::string& name) {
    if (name == "Puller:TotalsAgreed") {
      state = StateOf(bench.options.target_dir);
    }
  });
  const Summary summary = RunPull(bench.options);
  TEST_SetFaultHook(nullptr);
  REQUIRE_OK(summary.status);
  REQUIRE(state.unfinished.has_value());
  REQUIRE(state.unfinished->running);
  REQUIRE(state.unfinished->all_received);
  REQUIRE(state.unfinished->percent() == 100);
  REQUIRE(state.next.empty());
}

TEST_CASE("The state of a complete target names its source",
          "[target][status]") {
  Bench bench;
  const Summary summary = RunPull(bench.options);
  REQUIRE_OK(summary.status);
  TargetState state = StateOf(bench.options.target_dir + "/");
  REQUIRE_FALSE(state.unfinished.has_value());
  REQUIRE(state.complete->transfer_id == summary.transfer_id);
  REQUIRE(state.complete->source == bench.options.source.ToString());
  REQUIRE(state.complete->snapshot_sequence == summary.snapshot_sequence);
  REQUIRE(state.complete->finished_at.size() == 24);
  REQUIRE(state.next.empty());
  REQUIRE_FALSE(state.has_leftover);
  // With an unfinished swap to the same target, the state has both.
  bench.options.mode = PullMode::kSwap;
  PullAndCancel(bench.options, "Puller:HeadWritten", 1);
  state = StateOf(bench.options.target_dir);
  REQUIRE(state.complete->transfer_id == summary.transfer_id);
  REQUIRE_FALSE(state.has_leftover);
  REQUIRE(state.unfinished.has_value());
  REQUIRE(state.unfinished->transfer_id != summary.transfer_id);
  REQUIRE(state.next == kCommand);
}

TEST_CASE("A pull that crashed after its rename is complete, with a leftover",
          "[target][status]") {
  Bench bench;
  PullAndDie(bench.server->address(), bench.options, "Workspace:Published");
  const TargetState state = StateOf(bench.options.target_dir);
  REQUIRE(state.complete.has_value());
  REQUIRE(state.has_leftover);
  REQUIRE_FALSE(state.unfinished.has_value());
  REQUIRE(state.next == kCommand);
}

TEST_CASE("A command line that is too long is not recorded, and none is shown",
          "[target][status]") {
  Bench bench;
  bench.options.command_line = std::string(kMaxCommandLineBytes, 'x');
  PullAndCancel(bench.options, "Ingestor:Ingested", 2);
  REQUIRE(StateOf(bench.options.target_dir).next ==
          bench.options.command_line);
  bench.options.command_line += "x";
  bench.options.restart = true;
  PullAndCancel(bench.options, "Ingestor:Ingested", 2);
  const TargetState state = StateOf(bench.options.target_dir);
  REQUIRE(state.unfinished->chunks > 0);
  REQUIRE(state.next.empty());
}

// Refreshes a replica up to a crash at a point. Returns the target's state.
TargetState StateAfter(Bench* bench, PullMode mode, const std::string& point) {
  const Summary seeded = RunPull(bench->options);
  REQUIRE_OK(seeded.status);
  {
    test::OpenDb source(bench->dir / "source", test::OneFamily());
    for (const auto& [key, value] : EntriesOf(bench->options.target_dir)) {
      source.Put(key, "other " + value.substr(0, 900));
    }
  }
  bench->options.mode = mode;
  bench->options.chunk_bytes = 100'000;
  PullAndDie(bench->server->address(), bench->options, point);
  return StateOf(bench->options.target_dir);
}

TEST_CASE("During an unfinished refresh in place, the target is not complete",
          "[target][status]") {
  const std::string point =
      GENERATE("Puller:HeadWritten", "Refresh:AllIngested");
  Bench bench;
  const TargetState state = StateAfter(&bench, PullMode::kRefresh, point);
  REQUIRE_FALSE(state.complete.has_value());
  REQUIRE(state.previous.has_value());
  REQUIRE(state.unfinished.has_value());
  REQUIRE(state.unfinished->transfer_id != state.previous->transfer_id);
  REQUIRE(state.next == kCommand);
}

TEST_CASE("During an unfinished swap, the target is still complete",
          "[target][status]") {
  Bench bench;
  const TargetState state =
      StateAfter(&bench, PullMode::kSwap, "Puller:TotalsAgreed");
  REQUIRE(state.complete.has_value());
  REQUIRE(state.unfinished.has_value());
  REQUIRE(state.unfinished->all_received);
  REQUIRE(state.next == kCommand);
}

TEST_CASE("The state of a pull that cannot be resumed says why",
          "[target][status]") {
  Bench bench;
  const std::string journal = bench.options.target_dir + ".sstferry/journal";
  SECTION("nothing was recorded") {
    PullAndDie(bench.server->address(), bench.options,
               "Puller:DatabaseCreated");
    const TargetState state = StateOf(bench.options.target_dir);
    REQUIRE(state.unfinished->transfer_id.empty());
    REQUIRE(state.unfinished->percent() == 0);
    REQUIRE(state.next.empty());
  }
  SECTION("damage") {
    PullAndCancel(bench.options, "Ingestor:Ingested", 2);
    std::string bytes = BytesOf(journal);
    bytes[bytes.size() / 2] ^= 1;
    WriteBytes(journal, bytes);
    REQUIRE(StateOf(bench.options.target_dir)
                .unfinished->damage.find("journal") != std::string::npos);
  }
  SECTION("the machine was restarted") {
    bench.options.durability = Durability::kNone;
    PullAndCancel(bench.options, "Ingestor:Ingested", 2);
    TEST_SetBootId("another");
    const TargetState state = StateOf(bench.options.target_dir);
    TEST_SetBootId("");
    REQUIRE(state.unfinished->damage.find("--durability none") !=
            std::string::npos);
  }
}

}  // namespace
}  // namespace sstferry::target_state_test
