// Peers that answer every ping and do nothing else.
#include <filesystem>

#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry {
namespace {

using std::chrono::milliseconds;

PullOptions PullOf(const FakeSource& source, const ScratchDir& dir) {
  return PullFrom(source.address(), dir / "target");
}

void RequireTooSlow(const rocksdb::Status& status,
                    const std::string& sentence) {
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kTooSlow);
  REQUIRE(ExitCodeOf(EndState::kTooSlow) == 4);
  REQUIRE(status.ToString().find(sentence) != std::string::npos);
}

TEST_CASE("Pull gives up on a source that is there and does nothing",
          "[bad_input][stall]") {
  ScratchDir dir;
  SourceLies lies;
  bool verify = false;
  SECTION("instead of a chunk") {
    lies.before_range = [](Channel*, Channel* lane) {
      ReceiveEnd(lane).PermitUncheckedError();  // until the pull hangs up
    };
  }
  SECTION("instead of a digest") { verify = true; }
  const std::unique_ptr<FakeSource> source = LyingSource(lies);
  PullOptions options = PullOf(*source, dir);
  options.verify = verify;
  options.stall_timeout = milliseconds(300);
  RequireTooSlow(RunPull(options).status, "read and sent nothing for 300 ms");
  REQUIRE_FALSE(std::filesystem::exists(dir / "target"));
}

TEST_CASE("Pull waits for a source that reads and finds nothing to send",
          "[bad_input][stall]") {
  ScratchDir dir;
  constexpr milliseconds kStall(1000);
  SourceLies lies;
  lies.before_range = [kStall](Channel* control, Channel* lane) {
    Stats stats;
    const auto until = std::chrono::steady_clock::now() + 3 * kStall;
    while (std::chrono::steady_clock::now() < until) {
      stats.read_bytes++;
      if (!control->SendMessage(FrameType::kStats, stats).ok()) {
        return;  // the pull gave up
      }
      Frame frame;  // nothing comes: the pull waits
      lane->Receive(WaitLimit::Within(kStall / 10), &frame)
          .PermitUncheckedError();
    }
  };
  const std::unique_ptr<FakeSource> source = LyingSource(lies);
  PullOptions options = PullOf(*source, dir);
  options.lanes = 1;
  options.stall_timeout = kStall;
  REQUIRE_OK(RunPull(options).status);
}

TEST_CASE("Verify gives up on a side that is there and does nothing",
          "[bad_input][stall]") {
  const std::unique_ptr<FakeSource> left = LyingSource({});
  const std::unique_ptr<FakeSource> right = LyingSource({});
  VerifyOptions options;
  options.left = AddressAt(left->address());
  options.right = AddressAt(right->address());
  options.stall_timeout = milliseconds(300);
  Summary summary;
  RequireTooSlow(MakeVerify(options)->Run(&summary),
                 "read and sent nothing for 300 ms");
}

TEST_CASE("Server gives up on a target that is there and takes nothing",
          "[bad_input][stall]") {
  ScratchDir dir;
  SampleShape shape;
  shape.entries = 24'000;  // more than sockets hold
  MakeSampleDatabase(dir / "source", shape);
  ServeOptions serve = ServeSample(dir / "source");
  serve.stall_timeout = milliseconds(500);
  serve.peer_timeout = milliseconds(20'000);
  TestServer server(serve);
  std::unique_ptr<Channel> control;
  std::unique_ptr<Channel> lane;
  Opened opened;
  uint32_t ranges = 0;
  REQUIRE_OK(OpenSample(server.address(), &opened, &control, &ranges));
  REQUIRE_OK(DialLane(server.address(), opened.transfer_id, 0, &lane));
  for (uint32_t id = 0; id < ranges; ++id) {
    RangeRequest request;
    request.range_id = id;
    REQUIRE_OK(lane->SendMessage(FrameType::kRangeRequest, request));
  }
  RequireTooSlow(ReceiveEnd(control.get()), "took no byte for 500 ms");
  // It may answer as long as it likes: its snapshot is let go.
  REQUIRE_OK(control->SendMessage(FrameType::kPing, Ping()));
  RequireTooSlow(server.Report(0).status, "took no byte for 500 ms");
}

TEST_CASE("Stats count what the source reads", "[bad_input][stall]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  TestServer server(ServeSample(dir / "source"));
  std::unique_ptr<Channel> control;
  std::unique_ptr<Channel> lane;
  Opened opened;
  uint32_t ranges = 0;
  Finish totals;
  REQUIRE_OK(OpenSample(server.address(), &opened, &control, &ranges));
  REQUIRE_OK(DialLane(server.address(), opened.transfer_id, 0, &lane));
  REQUIRE_OK(TakeRanges(lane.get(), ranges, &totals));
  Stats stats;
  Frame frame;
  while (stats.read_bytes < totals.families[0].key_value_bytes) {
    REQUIRE_OK(control->Receive(WaitLimit::Within(milliseconds(3000)), &frame));
    if (frame.type == FrameType::kStats) {
      REQUIRE_OK(stats.DecodeFrom(frame.payload));
    }
    REQUIRE(frame.type != FrameType::kEnd);
  }
}

}  // namespace
}  // namespace sstferry
