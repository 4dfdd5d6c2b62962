// sstferry swap: its effects on a replica and on the application that serves
// it.
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/disk/durable.h"
#include "rocksdb/db.h"
#include "tests/pipeline/target/resume_support.h"
#include "tests/support/catch.h"
#include "tests/support/replica_world.h"
#include "tests/support/sample_database.h"

namespace sstferry::swap_test {
namespace {

namespace fs = std::filesystem;
using rocksdb::Status;
using Calls = std::vector<std::string>;

nlohmann::json LastTransferOf(const std::string& dir) {
  return nlohmann::json::parse(BytesOf(dir + "/last_transfer.json"));
}

void RequireEnds(const Summary& summary, EndState state,
                 const std::string& sentence) {
  INFO(summary.status.ToString());
  REQUIRE(EndStateOf(summary.status) == state);
  REQUIRE(MessageOf(summary.status).find(sentence) != std::string::npos);
}

TEST_CASE("A swap seeds a missing target, between the hooks",
          "[target][swap]") {
  ReplicaWorld world;
  const bool empty_target = GENERATE(false, true);
  if (empty_target) {
    fs::create_directory(world.target());
  }
  const Summary summary = RunPull(world.Options());
  REQUIRE_OK(summary.status);
  REQUIRE(world.calls() == Calls{"before", "after exchanged"});
  REQUIRE(EntriesOf(world.target()) == EntriesOf(world.source()));
  world.RequireNothingLeft();
  REQUIRE(summary.mode == "swap");
  REQUIRE(summary.state == "complete");
  REQUIRE(summary.sequence_old == 0);
  REQUIRE(summary.sequence_new == summary.snapshot_sequence);
}

TEST_CASE("A swap gives a served replica exactly the source's new entries",
          "[target][swap]") {
  ReplicaWorld world;
  const Summary first = RunPull(world.Options());
  REQUIRE_OK(first.status);
  const auto before = EntriesOf(world.target());
  world.ChangeSource();  // also deletes keys
  ServingApplication application(world.target());
  PullOptions options = world.Options();
  options.before_swap = application.CloseHook();
  options.after_swap = application.OpenHook();
  const Summary summary = RunPull(options);
  REQUIRE_OK(summary.status);
  REQUIRE(application.is_open());
  application.Close();
  REQUIRE(EntriesOf(world.target()) == EntriesOf(world.source()));
  REQUIRE(EntriesOf(world.target()) != before);
  world.RequireNothingLeft();
  REQUIRE(summary.sequence_old == first.snapshot_sequence);
  REQUIRE(summary.sequence_new > summary.sequence_old);
  REQUIRE(summary.outage_seconds > 0);
  REQUIRE(summary.outage_seconds < summary.seconds);
  const nlohmann::json last = LastTransferOf(world.target());
  REQUIRE(last["mode"] == "swap");
  REQUIRE(last["state"] == "complete");
  REQUIRE(last["sequence_old"] == summary.sequence_old);
  REQUIRE(last["sequence_new"] == summary.sequence_new);
  REQUIRE(last["outage_seconds"].get<double>() == summary.outage_seconds);
  REQUIRE(last["transfer_id"] == summary.transfer_id);
}

TEST_CASE("An open database is never exchanged, and the new one is kept",
          "[target][swap]") {
  ReplicaWorld world;
  REQUIRE_OK(RunPull(world.Options()).status);
  world.ChangeSource();
  const auto expected = EntriesOf(world.source());
  {
    ServingApplication application(world.target());
    world.Forget();
    const Summary summary = RunPull(world.Options());  // hooks that do nothing
    RequireEnds(summary, EndState::kBusy, "--before-swap must stop");
    REQUIRE(world.calls() == Calls{"before", "after as it was"});
    REQUIRE(summary.state.empty());
    REQUIRE(application.Get("changed").empty());
  }
  // The new database is complete, so the source is not needed.
  world.RemoveSource();
  PullOptions options = world.Options();
  options.verify = GENERATE(false, true);
  const Summary summary = RunPull(options);
  if (options.verify) {
    REQUIRE_FALSE(summary.status.ok());  // to verify needs the source
    return;
  }
  REQUIRE_OK(summary.status);
  REQUIRE(EntriesOf(world.target()) == expected);
  world.RequireNothingLeft();
}

TEST_CASE("The exchange of a verified database does not need the source",
          "[target][swap]") {
  ReplicaWorld world;
  REQUIRE_OK(RunPull(world.Options()).status);
  world.ChangeSource();
  const auto expected = EntriesOf(world.source());
  PullOptions options = world.Options();
  options.verify = true;
  options.before_swap = [](const SwapEvent&) {
    return Status::IOError("no answer");
  };
  RequireEnds(RunPull(options), EndState::kRefused, "nothing was exchanged");
  world.RemoveSource();
  options.before_swap = world.Options().before_swap;
  const Summary summary = RunPull(options);
  REQUIRE_OK(summary.status);
  REQUIRE(summary.verified);
  REQUIRE(EntriesOf(world.target()) == expected);
}

TEST_CASE("A hook that fails before the exchange leaves everything unchanged",
          "[target][swap]") {
  ReplicaWorld world;
  REQUIRE_OK(RunPull(world.Options()).status);
  const auto before = EntriesOf(world.target());
  world.ChangeSource();
  world.Forget();
  PullOptions options = world.Options();
  options.before_swap = [&world](const SwapEvent& event) {
    REQUIRE(event.transfer_id.size() == 32);
    world.Note("before fails");
    return Status::IOError("the server does not stop");
  };
  const Summary failed = RunPull(options);
  RequireEnds(failed, EndState::kRefused, "the server does not stop");
  REQUIRE(world.calls() == Calls{"before fails", "after as it was"});
  REQUIRE(EntriesOf(world.target()) == before);
  world.Forget();
  const Summary summary = RunPull(world.Options());
  REQUIRE_OK(summary.status);
  REQUIRE(summary.transfer_id == failed.transfer_id);
  REQUIRE(summary.chunks_resumed == summary.chunks);
  REQUIRE(world.calls() == Calls{"before", "after exchanged"});
  REQUIRE(EntriesOf(world.target()) == EntriesOf(world.source()));
  world.RequireNothingLeft();
}

TEST_CASE("A hook that fails after the exchange fails the pull, not the target",
          "[target][swap]") {
  ReplicaWorld world;
  REQUIRE_OK(RunPull(world.Options()).status);
  world.ChangeSource();
  PullOptions options = world.Options();
  int calls = 0;
  options.after_swap = [&calls](const SwapEvent& event) {
    REQUIRE(event.exchanged);
    return ++calls < 3 ? Status::IOError("port in use") : Status::OK();
  };
  Summary summary = RunPull(options);
  RequireEnds(summary, EndState::kInternal, "the exchange is complete, but");
  REQUIRE(summary.state == "complete");
  REQUIRE(ExitCodeOf(EndStateOf(summary.status)) == 1);
  REQUIRE(EntriesOf(world.target()) == EntriesOf(world.source()));
  // The old database stays until --after-swap succeeds.
  REQUIRE(fs::exists(world.target() + ".sstferry/db/CURRENT"));
  RequireEnds(RunPull(options), EndState::kInternal, "port in use");
  REQUIRE(calls == 2);
  world.ChangeSource();
  summary = RunPull(options);
  REQUIRE_OK(summary.status);
  REQUIRE(calls == 4);  // for the interrupted swap, and for its own
  REQUIRE(EntriesOf(world.target()) == EntriesOf(world.source()));
  world.RequireNothingLeft();
}

TEST_CASE("A pull cancelled between the hooks exchanges nothing and calls both",
          "[target][swap]") {
  ReplicaWorld world;
  REQUIRE_OK(RunPull(world.Options()).status);
  const auto before = EntriesOf(world.target());
  world.ChangeSource();
  world.Forget();
  PullOptions options = world.Options();
  Operation* running = nullptr;
  options.before_swap = [&](const SwapEvent& event) {
    REQUIRE_FALSE(event.stopped());
    running->Cancel();
    REQUIRE(event.stopped());
    world.Note("before");
    return Status::OK();
  };
  bool after_fails = GENERATE(false, true);
  options.after_swap = [&](const SwapEvent& event) {
    REQUIRE_FALSE(event.stopped());
    REQUIRE_FALSE(event.exchanged);
    world.Note("after");
    return after_fails ? Status::IOError("it is broken") : Status::OK();
  };
  const std::unique_ptr<Operation> operation = MakePull(options);
  running = operation.get();
  Summary summary;
  const Status status = operation->Run(&summary);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) ==
          (after_fails ? EndState::kInternal : EndState::kCancelled));
  REQUIRE((status.ToString().find("it is broken") != std::string::npos) ==
          after_fails);
  REQUIRE(world.calls() == Calls{"before", "after"});
  REQUIRE(EntriesOf(world.target()) == before);
  REQUIRE_OK(RunPull(world.Options()).status);
  REQUIRE(EntriesOf(world.target()) == EntriesOf(world.source()));
  world.RequireNothingLeft();
}

TEST_CASE("A cancelled deletion does not fail the pull, and is continued",
          "[target][swap]") {
  ReplicaWorld world;
  REQUIRE_OK(RunPull(world.Options()).status);
  world.ChangeSource();
  PullOptions options = world.Options();
  options.delete_rate_bytes_per_sec = 1000;  // would take minutes
  const std::unique_ptr<Operation> operation = MakePull(options);
  bool cancelled = false;
  TEST_SetFaultHook([&](const std::string& name) {
    if (name.rfind("PacedRemoval:", 0) == 0 && !cancelled) {
      cancelled = true;
      operation->Cancel();
    }
  });
  Summary summary;
  const Status status = operation->Run(&summary);
  TEST_SetFaultHook(nullptr);
  REQUIRE_OK(status);
  REQUIRE(cancelled);
  REQUIRE(summary.state == "complete");
  REQUIRE(fs::exists(world.target() + ".sstferry/old"));
  REQUIRE(EntriesOf(world.target()) == EntriesOf(world.source()));
  // A directory that was put in the old one's place is not deleted.
  fs::rename(world.target() + ".sstferry/old", world.target() + ".aside");
  fs::create_directory(world.target() + ".sstferry/old");
  WriteBytes(world.target() + ".sstferry/old/theirs", "precious");
  RequireEnds(RunPull(world.Options()), EndState::kRefused,
              "expected the record of");
  REQUIRE(BytesOf(world.target() + ".sstferry/old/theirs") == "precious");
  fs::remove_all(world.target() + ".sstferry/old");
  fs::rename(world.target() + ".aside", world.target() + ".sstferry/old");
  REQUIRE_OK(RunPull(world.Options()).status);
  world.RequireNothingLeft();
}

TEST_CASE("A second pull to a target is BUSY while the first one runs",
          "[target][swap]") {
  ReplicaWorld world;
  PullOptions options = world.Options();
  Summary second;
  options.before_swap = [&](const SwapEvent&) {
    second = RunPull(world.Options());
    return Status::OK();
  };
  REQUIRE_OK(RunPull(options).status);
  RequireEnds(second, EndState::kBusy, "another pull holds");
  REQUIRE(world.calls() == Calls{"after exchanged"});
}

TEST_CASE("A swap without --after-swap does not complete one that had it",
          "[target][swap]") {
  ReplicaWorld world;
  REQUIRE_OK(RunPull(world.Options()).status);
  world.ChangeSource();
  const bool is_exchanged = GENERATE(false, true);
  PullOptions options = world.Options();
  (is_exchanged ? options.after_swap : options.before_swap) =
      [](const SwapEvent&) { return Status::IOError("no answer"); };
  REQUIRE_FALSE(RunPull(options).status.ok());
  world.Forget();
  PullOptions plain = world.Options();
  plain.before_swap = plain.after_swap = nullptr;
  plain.restart = GENERATE(false, true);
  RequireEnds(RunPull(plain), EndState::kRefused,
              "run the same swap again, with its --after-swap");
  REQUIRE(fs::exists(world.target() + ".sstferry/exchange"));
  REQUIRE_OK(RunPull(world.Options()).status);
  REQUIRE_FALSE(world.calls().empty());
  REQUIRE(world.calls().back() == "after exchanged");
  REQUIRE(EntriesOf(world.target()) == EntriesOf(world.source()));
  world.RequireNothingLeft();
}

TEST_CASE("A refresh in place refuses to complete an interrupted swap",
          "[target][swap]") {
  ReplicaWorld world;
  REQUIRE_OK(RunPull(world.Options()).status);
  const auto before = EntriesOf(world.target());
  world.ChangeSource();
  PullOptions options = world.Options();
  options.after_swap = [](const SwapEvent&) { return Status::IOError("no"); };
  const Summary refreshed = RunPull(options);
  REQUIRE_FALSE(refreshed.status.ok());
  options = PullFrom(world.source(), world.target());
  options.mode = PullMode::kRefresh;
  RequireEnds(RunPull(options), EndState::kRefused,
              refreshed.transfer_id +
                  " was interrupted; run the same swap again");
  REQUIRE(EntriesOf(world.target()) == EntriesOf(world.source()));
  REQUIRE(EntriesOf(world.target() + ".sstferry/db") == before);
  REQUIRE_OK(RunPull(world.Options()).status);
  world.RequireNothingLeft();
}

TEST_CASE("A refresh in place leaves a swap alone that died between its hooks",
          "[target][swap][crash]") {
  const bool restarts = GENERATE(false, true);
  ReplicaWorld world;
  REQUIRE_OK(RunPull(world.Options()).status);
  const auto before = EntriesOf(world.target());
  world.ChangeSource();
  TestServer server(ServeAndHold(world.source()));
  PullOptions swap = world.Options();
  swap.source = AddressAt(server.address());
  PullAndDie(server.address(), swap, "Puller:BeforeSwapDone");
  world.Forget();
  PullOptions refresh = PullFrom(server.address(), world.target());
  refresh.mode = PullMode::kRefresh;
  refresh.restart = restarts;
  RequireEnds(RunPull(refresh), EndState::kRefused,
              "was interrupted; run the same swap again");
  REQUIRE(EntriesOf(world.target()) == before);
  REQUIRE(world.calls().empty());
  REQUIRE_OK(RunPull(swap).status);
  REQUIRE(world.calls() == Calls{"before", "after exchanged"});
  REQUIRE(EntriesOf(world.target()) == EntriesOf(world.source()));
  REQUIRE_FALSE(fs::exists(world.target() + ".sstferry"));
}

}  // namespace
}  // namespace sstferry::swap_test
