// Tests the rate limit of a pull: the target applies it, and it can change
// during the pull.
#include <future>

#include "pipeline/pull/puller.h"
#include "pipeline/pull/seed_target.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/test_db.h"

namespace sstferry::test::max_rate_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr uint64_t kSlow = 40'000;  // bytes per second: minutes for each test

void Fill(const std::string& dir, uint64_t count) {
  rocksdb::ColumnFamilyOptions options = Quiet();
  options.compression = rocksdb::kNoCompression;
  OpenDb db(dir, OneFamily(options));
  for (uint64_t i = 0; i < count; ++i) {
    db.Put(NumberedKey(i), RandomBytes(1000, i));
  }
  db.Flush();
}

PullOptions From(const ScratchDir& dir, uint64_t rate) {
  PullOptions options;
  options.method = PullMethod::kIngest;
  options.source.directory = dir / "source";
  options.target_dir = dir / "target";
  options.chunk_bytes = 64u << 10;
  options.max_rate_bytes_per_sec = rate;
  return options;
}

// Runs a pull in a thread of its own.
class Running {
 public:
  explicit Running(const PullOptions& options)
      : pull_(MakePull(options)),
        status_(std::async(std::launch::async,
                           [this] { return pull_->Run(&summary_); })) {}
  Operation* operation() { return pull_.get(); }
  // Waits for `bytes`. Returns false if the pull ended first.
  bool AwaitBytes(uint64_t bytes) {
    while (pull_->progress().done_bytes < bytes) {
      if (status_.wait_for(milliseconds(1)) == std::future_status::ready) {
        return false;
      }
    }
    return true;
  }
  rocksdb::Status Join() { return status_.get(); }
  const Summary& summary() const { return summary_; }

 private:
  const std::unique_ptr<Operation> pull_;
  Summary summary_;
  std::future<rocksdb::Status> status_;
};

TEST_CASE("A rate that is raised while a pull runs takes effect at once",
          "[transfer][rate]") {
  const ScratchDir dir;
  Fill(dir / "source", 8000);
  Running pull(From(dir, kSlow));
  REQUIRE(pull.AwaitBytes(1));
  pull.operation()->SetMaxRate(GENERATE(uint64_t{0}, uint64_t{1} << 40));
  REQUIRE_OK(pull.Join());
  INFO(pull.summary().seconds);
  REQUIRE(pull.summary().seconds < 60);  // instead of about 200
  ExpectSameEntries(dir / "source", dir / "target");
}

TEST_CASE("A rate that is lowered before or during a pull is kept",
          "[transfer][rate]") {
  const ScratchDir dir;
  Fill(dir / "source", 3000);
  const bool before = GENERATE(true, false);
  const std::unique_ptr<Operation> pull =
      MakePull(From(dir, before ? 0 : 1'000'000));
  if (before) {
    pull->SetMaxRate(2'000'000);
  }
  Summary summary;
  auto status =
      std::async(std::launch::async, [&] { return pull->Run(&summary); });
  while (!before && pull->progress().done_bytes == 0 &&
         status.wait_for(milliseconds(1)) == std::future_status::timeout) {
  }
  if (!before) {
    pull->SetMaxRate(kSlow);
    // At the old rate, the pull would have ended by now.
    REQUIRE(status.wait_for(seconds(5)) == std::future_status::timeout);
    pull->SetMaxRate(0);
  }
  REQUIRE_OK(status.get());
  REQUIRE(summary.seconds > 1.3);
}

TEST_CASE("Neither a cancellation nor a deadline waits for the rate",
          "[transfer][rate]") {
  const ScratchDir dir;
  Fill(dir / "source", 2000);
  const bool deadline = GENERATE(false, true);
  PullOptions options = From(dir, 100);
  options.deadline = milliseconds(deadline ? 10'000 : 0);
  Running pull(options);
  REQUIRE(pull.AwaitBytes(1));
  const steady_clock::time_point start = steady_clock::now();
  if (!deadline) {
    pull.operation()->Cancel();
  }
  REQUIRE(EndStateOf(pull.Join()) ==
          (deadline ? EndState::kDeadline : EndState::kCancelled));
  REQUIRE(steady_clock::now() - start < seconds(60));  // the rate takes hours
}

TEST_CASE("A resumed pull uses the rate of its own command",
          "[transfer][rate]") {
  const ScratchDir dir;
  Fill(dir / "source", 8000);
  Running slow(From(dir, kSlow));
  REQUIRE(slow.AwaitBytes(300'000));
  slow.operation()->Cancel();
  REQUIRE(EndStateOf(slow.Join()) == EndState::kCancelled);
  const bool faster = GENERATE(true, false);
  Running next(From(dir, faster ? 0 : 4'000'000));
  REQUIRE_OK(next.Join());
  REQUIRE(next.summary().chunks_resumed > 0);
  INFO(next.summary().seconds);
  REQUIRE(next.summary().seconds < 60);  // at the old rate: 190
  REQUIRE((faster || next.summary().seconds > 1.5));
  ExpectSameEntries(dir / "source", dir / "target");
}

TEST_CASE("Lanes that wait their turn under a rate limit are not too slow",
          "[transfer][rate]") {
  const ScratchDir dir;
  Fill(dir / "source", 3000);
  // Imitates a link whose buffers are smaller than a frame.
  MemoryTransport transport = MakeMemoryTransport(16u << 10);
  ServeOptions serve = ServeSample(dir / "source");
  serve.timeouts.stall = seconds(3);
  std::unique_ptr<SourceServer> server;
  REQUIRE_OK(MakeSourceServer(serve, std::move(transport.listener), &server));
  auto serving = std::async(std::launch::async, [&] { return server->Run(); });
  // Each lane sends a frame of 64 KiB every 5.2 s, longer than the stall limit.
  PullOptions options = From(dir, 200'000);
  options.source = SourceAddress();
  options.source.host = "in-process";
  options.source.name = "db";
  options.lanes = 16;
  Puller puller(options, transport.dialer.get(),
                [](const TargetInputs& inputs) {
                  return std::make_unique<SeedTarget>(inputs);
                });
  Summary summary;
  const rocksdb::Status status = puller.Run(&summary);
  server->Stop();
  REQUIRE_OK(serving.get());
  REQUIRE_OK(status);
  REQUIRE(summary.retries == 0);
  REQUIRE(summary.lanes == 16);
  REQUIRE(summary.seconds > 4);
}

TEST_CASE("A source keeps to the rate that a target requests",
          "[transfer][rate]") {
  const ScratchDir dir;
  Fill(dir / "source", 1000);
  TestServer server(ServeSample(dir / "source"));
  std::unique_ptr<Channel> control;
  REQUIRE_OK(DialControl(server.address(), &control));
  OpenRequest request;
  request.database = "db";
  request.lanes = 1;
  request.chunk_bytes = 64u << 10;
  request.max_rate_bytes_per_sec = 500'000;
  Opened opened;
  REQUIRE_OK(control->SendMessage(FrameType::kOpenRequest, request));
  uint32_t parts = 0;
  // A busy source sends Stats before it has opened the database.
  for (Frame frame; frame.type != FrameType::kPlanEnd;) {
    REQUIRE_OK(control->Receive({}, &frame));
    PlanEnd end;
    if (frame.type == FrameType::kOpened) {
      REQUIRE_OK(Decode(frame.payload, &opened));
    } else if (frame.type == FrameType::kPlanEnd) {
      REQUIRE_OK(Decode(frame.payload, &end));
      parts = end.part_count;
    }
  }
  std::unique_ptr<Channel> lane;
  REQUIRE_OK(DialLane(server.address(), opened.transfer_id, 0, &lane));
  Finish totals;
  const steady_clock::time_point start = steady_clock::now();
  REQUIRE_OK(TakeParts(lane.get(), parts, &totals));
  const double took =
      std::chrono::duration<double>(steady_clock::now() - start).count();
  REQUIRE(took > 1.6);  // 2 without timing errors
}

}  // namespace
}  // namespace sstferry::test::max_rate_test
