// Tests that a cancelled pull ends before any of its timeouts, whatever it and
// its source are doing. Each test waits until the pull does the thing under
// test.
#include <filesystem>
#include <future>
#include <iomanip>
#include <sstream>
#include <thread>

#include "format/coding.h"
#include "format/limits.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/gate.h"
#include "tests/support/relay.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/silent_port.h"

namespace sstferry::stop_pull_test {
namespace {

namespace fs = std::filesystem;
using rocksdb::Status;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

PullOptions PullOver(const HostPort& where, const ScratchDir& dir) {
  PullOptions options = PullFrom(where, dir / "target");
  // With long timeouts, only the cancellation can end the pull.
  options.timeouts.connect = milliseconds(120'000);
  options.timeouts.peer = milliseconds(120'000);
  return options;
}

// Runs an operation on a thread of its own until a test cancels it.
class Running {
 public:
  explicit Running(std::unique_ptr<Operation> operation)
      : operation_(std::move(operation)),
        status_(std::async(std::launch::async, [this] {
          return operation_->Run(&summary_);
        })) {}
  ~Running() { operation_->Cancel(); }
  Operation* operation() { return operation_.get(); }
  bool ended() {
    return status_.wait_for(milliseconds(0)) == std::future_status::ready;
  }
  // Cancels the operation and requires that it ends. Calls `then` after the
  // cancellation, for example to open a gate.
  void RequireEndsOnCancel(const std::function<void()>& then = nullptr) {
    REQUIRE_FALSE(ended());
    const auto start = steady_clock::now();
    operation_->Cancel();
    if (then) {
      then();
    }
    const Status status = status_.get();
    const auto took = steady_clock::now() - start;
    INFO(status.ToString());
    REQUIRE(EndStateOf(status) == EndState::kCancelled);
    REQUIRE(EndStateOf(summary_.status) == EndState::kCancelled);
    REQUIRE(took < milliseconds(60'000));  // less than any of the timeouts
  }

 private:
  Summary summary_;
  const std::unique_ptr<Operation> operation_;
  std::future<Status> status_;
};

enum Kind { kPull, kPlan, kVerify };

// Requires what every cancelled pull leaves: no target, and the workspace.
void RequireOnlyWorkspace(const ScratchDir& dir) {
  REQUIRE_FALSE(fs::exists(dir / "target"));
  REQUIRE(fs::exists(dir / "target.sstferry"));
}

// Returns the number of sockets of this machine that wait for an answer of that
// port (SYN_SENT).
size_t ConnectsTo(uint16_t port) {
  std::ostringstream wanted;
  wanted << "0100007F:" << std::uppercase << std::hex << std::setw(4)
         << std::setfill('0') << port << " 02 ";
  const std::string table = BytesOf("/proc/net/tcp");
  size_t found = 0;
  for (size_t at = table.find(wanted.str()); at != std::string::npos;
       at = table.find(wanted.str(), at + 1)) {
    ++found;
  }
  return found;
}

TEST_CASE("A pull whose connection is not answered can be cancelled",
          "[bad_input][stop]") {
  ScratchDir dir;
  const SilentPort silent;
  const size_t before = ConnectsTo(silent.where().port);
  Running pull(MakePull(PullOver(silent.where(), dir)));
  while (ConnectsTo(silent.where().port) <= before) {
    REQUIRE_FALSE(pull.ended());
    std::this_thread::yield();
  }
  pull.RequireEndsOnCancel();
}

TEST_CASE("An operation that waits for a source's snapshot, or for a slot, can "
          "be cancelled",
          "[bad_input][stop]") {
  ScratchDir dir;
  const bool is_busy = GENERATE(false, true);
  CAPTURE(is_busy);
  std::promise<void> asked;
  FakeSource source([&asked, is_busy](Channel* channel) {
    Hello hello;
    HelloAck ack;
    const WaitLimit soon = WaitLimit::Within(milliseconds(60'000));
    Frame frame;
    Status got = ServerHandshake(channel, "fake", "0", soon, &hello, &ack);
    if (got.ok()) got = channel->Receive(soon, &frame);
    if (got.ok() && frame.type == FrameType::kFactsRequest) {  // from a plan
      got = channel->SendMessage(FrameType::kFactsReply, FactsReply());
      if (got.ok()) got = channel->Receive(soon, &frame);
    }
    if (got.ok() && frame.type == FrameType::kOpenRequest) {
      if (is_busy) {
        channel->SendMessage(FrameType::kBusy, Busy{kMaxRetryAfterMillis})
            .PermitUncheckedError();
        ReceiveEnd(channel).PermitUncheckedError();  // it has closed it
      }
      asked.set_value();
    }
    ReceiveEnd(channel).PermitUncheckedError();
  });
  PullOptions options = PullOver(source.address(), dir);
  options.method = PullMethod::kIngest;  // so that it requests nothing before
  const Kind kind = GENERATE(kPull, kPlan, kVerify);
  VerifyOptions verify;
  verify.left = options.source;
  verify.right.directory = dir / "right";
  verify.timeouts.peer = options.timeouts.peer;
  if (kind == kVerify) {
    MakeSampleDatabase(dir / "right");
  }
  Running waiting(kind == kPull   ? MakePull(options)
                  : kind == kPlan ? MakePlan(options)
                                  : MakeVerify(verify));
  REQUIRE(asked.get_future().wait_for(std::chrono::seconds(60)) ==
          std::future_status::ready);
  waiting.RequireEndsOnCancel();
  REQUIRE_FALSE(fs::exists(dir / "target"));
}

TEST_CASE("A source can only name a retry time between 0.1 and 60 seconds",
          "[bad_input][stop]") {
  ScratchDir dir;
  const uint32_t millis = GENERATE(0u, 99u, 60'001u, 4'000'000'000u);
  CAPTURE(millis);
  FakeSource source([millis](Channel* channel) {
    Hello hello;
    HelloAck ack;
    const WaitLimit soon = WaitLimit::Within(milliseconds(60'000));
    OpenRequest request;
    if (ServerHandshake(channel, "fake", "0", soon, &hello, &ack).ok() &&
        channel->ReceiveMessage(FrameType::kOpenRequest, soon, &request)
            .ok()) {
      std::string payload;  // our encoder would refuse this value
      PutFixed32(&payload, millis);
      channel->Send(FrameType::kBusy, payload).PermitUncheckedError();
    }
    ReceiveEnd(channel).PermitUncheckedError();
  });
  PullOptions options = PullOver(source.address(), dir);
  options.method = PullMethod::kIngest;  // so that it requests nothing before
  const Summary summary = RunPull(options);
  INFO(summary.status.ToString());
  REQUIRE(EndStateOf(summary.status) == EndState::kCorrupt);
  REQUIRE_FALSE(fs::exists(dir / "target"));
}

TEST_CASE("A pull over a link that stopped in either direction can be "
          "cancelled",
          "[bad_input][stop]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  ServeOptions serve = ServeSample(dir / "source");
  serve.max_rate_bytes_per_sec = 200'000;
  TestServer server(serve);
  Relay relay(server.address());
  const bool to_source = GENERATE(true, false);
  const bool from_source = GENERATE(true, false);
  const bool dropped = GENERATE(true, false);
  Running pull(MakePull(PullOver(relay.address(), dir)));
  REQUIRE(relay.WaitForBytes(Relay::kToClient, 100'000));
  if (dropped) {
    relay.SetDrop(Relay::kToTarget, to_source);
    relay.SetDrop(Relay::kToClient, from_source);
  } else {
    relay.SetStall(Relay::kToTarget, to_source);
    relay.SetStall(Relay::kToClient, from_source);
  }
  pull.RequireEndsOnCancel();
  RequireOnlyWorkspace(dir);
}

TEST_CASE("A pull during an ingest, with a full queue, can be cancelled",
          "[bad_input][stop]") {
  ScratchDir dir;
  SampleShape shape;
  shape.entries = 8000;
  MakeSampleDatabase(dir / "source", shape);
  Gate gate;
  auto disk = std::make_shared<FaultyFileSystem>();
  disk->OnStep([&gate](FileStep step, const std::string& path) {
    if (step == FileStep::kLink && path.find("/db/") != std::string::npos) {
      gate.Pass();
    }
  });
  TestServer server(ServeSample(dir / "source"));
  PullOptions options = PullOver(server.address(), dir);
  options.lanes = 4;
  options.file_system = disk;
  Running pull(MakePull(options));
  REQUIRE(gate.AwaitReached());
  // Two chunks are being ingested, two per lane wait, and each of the other
  // lanes has one more.
  const uint64_t staged = 2 + 2 * options.lanes + (options.lanes - 1);
  while (disk->count(FileStep::kSync, "/staging/") < staged) {
    REQUIRE_FALSE(pull.ended());
    std::this_thread::yield();
  }
  pull.RequireEndsOnCancel([&gate] { gate.Open(); });
  RequireOnlyWorkspace(dir);
  // Only the running ingest was completed.
  REQUIRE(disk->count(FileStep::kLink, "/db/") <= 2);
  REQUIRE(EndStateOf(server.Report(0).status) == EndState::kCancelled);
}

TEST_CASE("A pull that writes, syncs or closes can be cancelled",
          "[bad_input][stop]") {
  struct Place {
    FileStep step;
    const char* part;
    const char* phase;
    bool verify;
  };
  const Place place = GENERATE(
      Place{FileStep::kCreate, "/db/", "plan", false},
      Place{FileStep::kAppend, "/staging/", "transfer", false},
      Place{FileStep::kSync, "/staging/", "transfer", false},
      Place{FileStep::kSync, "/journal", "plan", false},
      Place{FileStep::kRead, "/db/", "verify", true},
      Place{FileStep::kAppend, "last_transfer.json", "swap", false});
  INFO(place.part << " in " << place.phase);
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  Gate gate;
  auto disk = std::make_shared<FaultyFileSystem>();
  Operation* running = nullptr;
  std::mutex mu;  // guards `running`, which is set after the start
  disk->OnStep([&](FileStep step, const std::string& path) {
    if (step != place.step || path.find(place.part) == std::string::npos) {
      return;
    }
    mu.lock();
    Operation* const pull = running;
    mu.unlock();
    if (pull != nullptr && pull->progress().phase == place.phase) {
      gate.Pass();
    }
  });
  PullOptions options = PullFrom(dir / "source", dir / "target");
  options.verify = place.verify;
  options.file_system = disk;
  std::unique_ptr<Operation> operation = MakePull(options);
  running = operation.get();
  Running pull(std::move(operation));
  REQUIRE(gate.AwaitReached());
  pull.RequireEndsOnCancel([&gate] { gate.Open(); });
  RequireOnlyWorkspace(dir);
}

TEST_CASE("A pull that waits for the source's totals can be cancelled",
          "[bad_input][stop]") {
  ScratchDir dir;
  Gate gate;
  SourceLies lies;
  lies.finished = [&gate](Finish*) { gate.Pass(); };
  const std::unique_ptr<FakeSource> source = LyingSource(lies);
  Running pull(MakePull(PullOver(source->address(), dir)));
  REQUIRE(gate.AwaitReached());
  pull.RequireEndsOnCancel();
  gate.Open();
  RequireOnlyWorkspace(dir);
}

}  // namespace
}  // namespace sstferry::stop_pull_test
