// Tests that both sides report the same end of a transfer: the target's
// summary, JSON and exit code, and the source's report. Provokes each end state
// once.
#include <filesystem>
#include <functional>
#include <future>
#include <nlohmann/json.hpp>

#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/relay.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::end_state_test {
namespace {

namespace fs = std::filesystem;
using rocksdb::Status;
using std::chrono::milliseconds;

// Returns the exit code that docs/operations.md documents for this state.
int ReadmeExitCode(EndState state) {
  switch (state) {
    case EndState::kOk:
      return 0;
    case EndState::kDifferent:
    case EndState::kChangedSince:
      return 3;
    case EndState::kNoSpace:
    case EndState::kCancelled:
    case EndState::kDeadline:
    case EndState::kDeadPeer:
    case EndState::kTooSlow:
    case EndState::kSnapshotGone:
      return 4;
    case EndState::kBusy:
      return 5;
    default:
      return 1;
  }
}

// Requires that the summary, its JSON and its exit code agree.
void RequireTarget(const Summary& summary, EndState state) {
  INFO(summary.status.ToString());
  REQUIRE(EndStateOf(summary.status) == state);
  const auto json = nlohmann::json::parse(SummaryToJson(summary, "pull"));
  REQUIRE(json["status"] == EndStateName(state));
  REQUIRE(json["exit_code"] == ReadmeExitCode(state));
  REQUIRE(ExitCodeOf(state) == ReadmeExitCode(state));
  REQUIRE(json["error"].is_null() == (state == EndState::kOk));
  if (state != EndState::kOk) {
    REQUIRE(json["error"]["code"] == EndStateName(state));
    REQUIRE(json["error"]["message"] == SentenceOf(summary.status));
    REQUIRE(json["error"]["where"] == summary.error_where);
    REQUIRE_FALSE(summary.error_where.empty());
  }
}

bool Holds(const Status& whole, const Status& part) {
  return MessageOf(whole).find(MessageOf(part)) != std::string::npos;
}

// A pull from a server of a small database. A test adds one fault.
struct Bench {
  explicit Bench(size_t entries = 2000) {
    SampleShape shape;
    shape.entries = entries;
    MakeSampleDatabase(dir / "source", shape);
    serve = ServeSample(dir / "source");
    disk = std::make_shared<FaultyFileSystem>();
  }
  PullOptions Options() {
    server = std::make_unique<TestServer>(serve);
    PullOptions options = PullFrom(server->address(), dir / "target");
    options.file_system = disk;
    options.timeouts.peer = milliseconds(60'000);
    return options;
  }
  // Requires that both sides report this state. The side that did not find the
  // problem repeats the other side's message.
  void RequireEnd(const Summary& summary, EndState state) {
    RequireTarget(summary, state);
    const TransferReport report = server->Report(0);
    INFO(summary.status.ToString() << " / " << report.status.ToString());
    REQUIRE(EndStateOf(report.status) == state);
    REQUIRE((Holds(summary.status, report.status) ||
             Holds(report.status, summary.status)));
    REQUIRE(fs::exists(dir / "target") == (state == EndState::kOk));
  }
  ScratchDir dir;
  ServeOptions serve;
  std::shared_ptr<FaultyFileSystem> disk;
  std::unique_ptr<TestServer> server;
};

TEST_CASE("Both sides of a pull report the same end state",
          "[bad_input][end_state]") {
  Bench bench;
  SECTION("OK") {
    bench.RequireEnd(RunPull(bench.Options()), EndState::kOk);
  }
  SECTION("REFUSED: a family that does not exist") {
    PullOptions options = bench.Options();
    options.selection.families = {"nobody"};
    bench.RequireEnd(RunPull(options), EndState::kRefused);
  }
  SECTION("INCOMPATIBLE: files that the replica's application cannot read") {
    PullOptions options = bench.Options();
    options.method = PullMethod::kClone;
    options.for_rocksdb = "6.20.3";  // XXH3 checksums came with 6.27
    bench.RequireEnd(RunPull(options), EndState::kIncompatible);
  }
  SECTION("NO_SPACE: found by the target") {
    bench.disk->FailAt(FileStep::kAppend, 2, DiskFull(), "/staging/");
    bench.RequireEnd(RunPull(bench.Options()), EndState::kNoSpace);
  }
  SECTION("INTERNAL: the target's disk breaks") {
    bench.disk->FailAt(FileStep::kAppend, 2, DiskBroken(), "/staging/");
    bench.RequireEnd(RunPull(bench.Options()), EndState::kInternal);
  }
  SECTION("INTERNAL: after the totals agreed") {
    bench.disk->FailAt(FileStep::kCreate, 1, DiskBroken(),
                       "last_transfer.json");
    bench.RequireEnd(RunPull(bench.Options()), EndState::kInternal);
  }
  SECTION("CORRUPT: a block of the source") {
    for (const std::string& name : NamesOf(bench.dir / "source")) {
      if (name.ends_with(".sst")) {
        const std::string path = bench.dir / ("source/" + name);
        std::string bytes = BytesOf(path);
        bytes[bytes.size() / 2] ^= 1;
        WriteBytes(path, bytes);
      }
    }
    PullOptions options = bench.Options();
    options.lanes = 1;  // two lanes could report different blocks
    bench.RequireEnd(RunPull(options), EndState::kCorrupt);
  }
  SECTION("SOURCE_ERROR: no place for a snapshot") {
    WriteBytes(bench.dir / "file", "");
    bench.serve.snapshot_dir = bench.dir / "file/links";
    bench.RequireEnd(RunPull(bench.Options()), EndState::kSourceError);
  }
  SECTION("TOO_SLOW: the source sends next to nothing") {
    bench.serve.max_rate_bytes_per_sec = 100;
    PullOptions options = bench.Options();
    options.timeouts.stall = milliseconds(3000);  // longer than opening takes
    bench.RequireEnd(RunPull(options), EndState::kTooSlow);
  }
  SECTION("CANCELLED: by the target") {
    bench.serve.max_rate_bytes_per_sec = 200'000;
    const std::unique_ptr<Operation> pull = MakePull(bench.Options());
    Summary summary;
    auto running = std::async(std::launch::async,
                              [&] { return pull->Run(&summary); });
    while (pull->progress().done_bytes == 0) {
      REQUIRE(running.wait_for(milliseconds(1)) ==
              std::future_status::timeout);
    }
    pull->Cancel();
    running.get().PermitUncheckedError();  // the summary has the status
    bench.RequireEnd(summary, EndState::kCancelled);
  }
  SECTION("CANCELLED by the source, and the target waits for it in vain") {
    bench.serve.max_rate_bytes_per_sec = 200'000;
    PullOptions options = bench.Options();
    options.timeouts.retry = milliseconds(500);
    // Without this, a short `retry` would also limit the first handshake.
    options.timeouts.first_answer = milliseconds(60'000);
    const std::unique_ptr<Operation> pull = MakePull(options);
    Summary summary;
    auto running = std::async(std::launch::async,
                              [&] { return pull->Run(&summary); });
    while (pull->progress().done_bytes == 0) {
      REQUIRE(running.wait_for(milliseconds(1)) ==
              std::future_status::timeout);
    }
    bench.server->Stop();
    running.get().PermitUncheckedError();
    RequireTarget(summary, EndState::kDeadPeer);
    REQUIRE(EndStateOf(bench.server->Report(0).status) ==
            EndState::kCancelled);
  }
}

TEST_CASE("A denial before a transfer is in both logs",
          "[bad_input][end_state]") {
  Bench bench;
  bench.serve.databases[0].allowed = {"somebody else"};
  const Summary summary = RunPull(bench.Options());
  RequireTarget(summary, EndState::kDenied);
  const std::string sentence =
      "a peer without a certificate may not read database 'db'";
  REQUIRE(MessageOf(summary.status).find(sentence) != std::string::npos);
  REQUIRE(bench.server->WaitForLog("DENIED: " + sentence));
}

TEST_CASE("A link that becomes silent is DEAD_PEER on both sides",
          "[bad_input][end_state]") {
  Bench bench;
  bench.serve.max_rate_bytes_per_sec = 300'000;
  bench.serve.timeouts.peer = milliseconds(5000);
  PullOptions options = bench.Options();
  Relay relay(bench.server->address());
  options.source.port = relay.address().port;
  options.timeouts.peer = milliseconds(5000);
  options.timeouts.retry = milliseconds(0);
  auto running =
      std::async(std::launch::async, [&] { return RunPull(options); });
  REQUIRE(relay.WaitForBytes(Relay::kToClient, 100'000));
  relay.SetDrop(Relay::kToClient, true);
  relay.SetDrop(Relay::kToTarget, true);
  RequireTarget(running.get(), EndState::kDeadPeer);
  REQUIRE(EndStateOf(bench.server->Report(0).status) == EndState::kDeadPeer);
}

TEST_CASE("A second pull into the same directory is BUSY and does not contact "
          "the source",
          "[bad_input][end_state]") {
  Bench bench;
  bench.serve.max_rate_bytes_per_sec = 200'000;
  const PullOptions options = bench.Options();
  const std::unique_ptr<Operation> first = MakePull(options);
  Summary summary;
  auto running =
      std::async(std::launch::async, [&] { return first->Run(&summary); });
  while (first->progress().done_bytes == 0) {
    REQUIRE(running.wait_for(milliseconds(1)) == std::future_status::timeout);
  }
  RequireTarget(RunPull(options), EndState::kBusy);
  first->Cancel();
  running.get().PermitUncheckedError();
  bench.RequireEnd(summary, EndState::kCancelled);  // the only report
}

TEST_CASE("A difference that verify finds is no failure of the sources",
          "[bad_input][end_state]") {
  Bench bench;
  SampleShape other;
  other.entries = 1999;
  MakeSampleDatabase(bench.dir / "other", other);
  const PullOptions options = bench.Options();
  VerifyOptions verify;
  verify.left = options.source;
  verify.right.directory = bench.dir / "other";
  Summary summary;
  MakeVerify(verify)->Run(&summary).PermitUncheckedError();
  RequireTarget(summary, EndState::kDifferent);
  bench.server->Stop();  // after this, all sessions have logged their ends
  REQUIRE_FALSE(bench.server->LogHolds("DIFFERENT"));
  REQUIRE_FALSE(bench.server->LogHolds("request from"));
}

// Generates every state except OK.
EndState AnyFailure() {
  return static_cast<EndState>(
      GENERATE(range(1, static_cast<int>(kMaxEndState) + 1)));
}

TEST_CASE("The pull ends with any end state that the source reports, and with "
          "its message",
          "[bad_input][end_state]") {
  const EndState state = AnyFailure();
  INFO(EndStateName(state));
  SourceLies lies;
  const auto say = [state](Channel* channel) {
    SendEnd(channel, MakeStatus(state, "as the source says", "rm -rf /"),
            "fake");
  };
  lies.before_part = [say](Channel* control, Channel*) { say(control); };
  const std::unique_ptr<FakeSource> source = LyingSource(lies);
  ScratchDir dir;
  PullOptions options = PullFrom(source->address(), dir / "target");
  options.timeouts.retry = milliseconds(0);
  const Summary summary = RunPull(options);
  RequireTarget(summary, state);
  REQUIRE(MessageOf(summary.status).find("as the source says") !=
          std::string::npos);
  // Never a command that the peer chose.
  REQUIRE(NextOf(summary.status).find("rm") == std::string::npos);
}

TEST_CASE("The source reports any end state that the target reports, with its "
          "message",
          "[bad_input][end_state]") {
  const EndState state = AnyFailure();
  INFO(EndStateName(state));
  Bench bench(100);
  bench.Options();
  std::unique_ptr<Channel> control;
  Opened opened;
  REQUIRE_OK(OpenSample(bench.server->address(), &opened, &control));
  SendEnd(control.get(), MakeStatus(state, "as the target says", "rm -rf /"),
          "fake");
  const TransferReport report = bench.server->Report(0);
  INFO(report.status.ToString());
  REQUIRE(EndStateOf(report.status) == state);
  REQUIRE(MessageOf(report.status)
              .find("as the target says; next: rm -rf /") !=
          std::string::npos);
  REQUIRE(NextOf(report.status).empty());  // no command that the peer chose
}

}  // namespace
}  // namespace sstferry::end_state_test
