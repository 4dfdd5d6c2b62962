// Tests peers that answer every ping and do nothing else.
#include <filesystem>

#include "sstferry/status.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::stall_test {
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

TEST_CASE("A pull gives up on a source that answers pings and does nothing "
          "else",
          "[bad_input][stall]") {
  ScratchDir dir;
  SourceLies lies;
  bool verify = false;
  SECTION("instead of a chunk") {
    lies.before_part = [](Channel*, Channel* lane) {
      ReceiveEnd(lane).PermitUncheckedError();  // until the pull closes it
    };
  }
  SECTION("instead of a digest") { verify = true; }
  const std::unique_ptr<FakeSource> source = LyingSource(lies);
  PullOptions options = PullOf(*source, dir);
  options.verify = verify;
  options.timeouts.stall = milliseconds(300);
  RequireTooSlow(RunPull(options).status, "read and sent nothing for 300 ms");
  REQUIRE_FALSE(std::filesystem::exists(dir / "target"));
}

struct Withheld {
  FrameType type;
  EndState state;
  bool verify = false;
  bool of_lanes = false;
};

TEST_CASE("Every wait of a pull ends, whatever message its source withholds",
          "[bad_input][stall]") {
  const Withheld withheld = GENERATE(
      Withheld{FrameType::kHelloAck, EndState::kDeadPeer},
      Withheld{FrameType::kOpened, EndState::kTooSlow},
      Withheld{FrameType::kFamily, EndState::kTooSlow},
      Withheld{FrameType::kParts, EndState::kTooSlow},
      Withheld{FrameType::kPlanEnd, EndState::kTooSlow},
      Withheld{FrameType::kHelloAck, EndState::kDeadPeer, false, true},
      Withheld{FrameType::kChunkBegin, EndState::kTooSlow},
      Withheld{FrameType::kChunkData, EndState::kTooSlow},
      Withheld{FrameType::kChunkEnd, EndState::kTooSlow},
      Withheld{FrameType::kPartEnd, EndState::kTooSlow},
      Withheld{FrameType::kFinished, EndState::kTooSlow},
      Withheld{FrameType::kDigestReply, EndState::kTooSlow, true});
  const bool by_deadline = GENERATE(false, true);
  CAPTURE(FrameTypeName(withheld.type), withheld.of_lanes, by_deadline);
  ScratchDir dir;
  SourceLies lies;
  lies.withholds = withheld.type;
  lies.withholds_of_lanes = withheld.of_lanes;
  const std::unique_ptr<FakeSource> source = LyingSource(lies);
  PullOptions options = PullOf(*source, dir);
  options.verify = withheld.verify;
  options.timeouts.stall = milliseconds(by_deadline ? 60'000 : 400);
  if (withheld.type == FrameType::kHelloAck) {
    options.timeouts.connect = options.timeouts.stall;
  }
  options.deadline = milliseconds(by_deadline ? 400 : 0);
  const auto start = std::chrono::steady_clock::now();
  const Summary summary = RunPull(options);
  INFO(summary.status.ToString());
  REQUIRE(EndStateOf(summary.status) ==
          (by_deadline ? EndState::kDeadline : withheld.state));
  REQUIRE(std::chrono::steady_clock::now() - start < milliseconds(40'000));
}

TEST_CASE("Status and plan end even if their source does not answer",
          "[bad_input][stall]") {
  SourceLies lies;
  lies.withholds = FrameType::kOpened;
  const std::unique_ptr<FakeSource> source = LyingSource(lies);
  const auto start = std::chrono::steady_clock::now();
  SECTION("status") {
    StatusOptions options;
    options.where = AddressAt(source->address());
    options.timeouts.stall = milliseconds(300);
    StatusReport report;
    RequireTooSlow(MakeStatusQuery(options)->Run(&report), "for 300 ms");
  }
  SECTION("plan, by its stall timeout") {
    PullOptions options;
    options.method = PullMethod::kIngest;
    options.source = AddressAt(source->address(), GENERATE("", "db"));
    options.timeouts.stall = milliseconds(300);
    Summary summary;
    RequireTooSlow(MakePlan(options)->Run(&summary), "for 300 ms");
  }
  SECTION("plan, by its deadline") {
    PullOptions options;
    options.method = PullMethod::kIngest;
    options.source = AddressAt(source->address(), GENERATE("", "db"));
    options.deadline = milliseconds(300);
    Summary summary;
    REQUIRE(EndStateOf(MakePlan(options)->Run(&summary)) ==
            EndState::kDeadline);
  }
  REQUIRE(std::chrono::steady_clock::now() - start < milliseconds(40'000));
}

TEST_CASE("A pull waits for a source that reads while it plans",
          "[bad_input][stall]") {
  ScratchDir dir;
  constexpr milliseconds kStall(4000);
  SourceLies lies;
  lies.after_opened = [kStall](Channel* control) {
    Stats stats;
    const auto until = std::chrono::steady_clock::now() + 2 * kStall;
    while (std::chrono::steady_clock::now() < until) {
      stats.read_bytes++;
      Frame frame;  // the pull sends nothing: it waits
      if (!control->SendMessage(FrameType::kStats, stats).ok() ||
          !control->Receive(WaitLimit::Within(kStall / 10), &frame)
               .IsTimedOut()) {
        return;
      }
    }
    SendEnd(control, MakeStatus(EndState::kSourceError, "after all"), "fake");
  };
  const std::unique_ptr<FakeSource> source = LyingSource(lies);
  PullOptions options = PullOf(*source, dir);
  options.timeouts.stall = kStall;
  options.timeouts.peer = milliseconds(120'000);  // no pings come
  REQUIRE(EndStateOf(RunPull(options).status) == EndState::kSourceError);
}

TEST_CASE("A pull waits for a source that reads and finds nothing to send",
          "[bad_input][stall]") {
  ScratchDir dir;
  constexpr milliseconds kStall(4000);
  SourceLies lies;
  lies.before_part = [kStall](Channel* control, Channel* lane) {
    Stats stats;
    const auto until = std::chrono::steady_clock::now() + 2 * kStall;
    while (std::chrono::steady_clock::now() < until) {
      stats.read_bytes++;
      if (!control->SendMessage(FrameType::kStats, stats).ok()) {
        return;  // the pull gave up
      }
      Frame frame;  // the pull sends nothing: it waits
      lane->Receive(WaitLimit::Within(kStall / 10), &frame)
          .PermitUncheckedError();
    }
  };
  const std::unique_ptr<FakeSource> source = LyingSource(lies);
  PullOptions options = PullOf(*source, dir);
  options.lanes = 1;
  options.timeouts.stall = kStall;
  REQUIRE_OK(RunPull(options).status);
}

TEST_CASE("Verify gives up on a side that answers pings and does nothing else",
          "[bad_input][stall]") {
  const std::unique_ptr<FakeSource> left = LyingSource({});
  const std::unique_ptr<FakeSource> right = LyingSource({});
  VerifyOptions options;
  options.left = AddressAt(left->address());
  options.right = AddressAt(right->address());
  options.timeouts.stall = milliseconds(300);
  Summary summary;
  RequireTooSlow(MakeVerify(options)->Run(&summary),
                 "read and sent nothing for 300 ms");
}

TEST_CASE("A server gives up on a target that reads nothing",
          "[bad_input][stall]") {
  ScratchDir dir;
  SampleShape shape;
  shape.entries = 24'000;  // more than socket buffers can hold
  MakeSampleDatabase(dir / "source", shape);
  ServeOptions serve = ServeSample(dir / "source");
  serve.timeouts.stall = milliseconds(500);
  TestServer server(serve);
  std::unique_ptr<Channel> control;
  std::unique_ptr<Channel> lane;
  Opened opened;
  uint32_t parts = 0;
  REQUIRE_OK(OpenSample(server.address(), &opened, &control, &parts));
  REQUIRE_OK(DialLane(server.address(), opened.transfer_id, 0, &lane));
  for (uint32_t id = 0; id < parts; ++id) {
    PartRequest request;
    request.part_id = id;
    REQUIRE_OK(lane->SendMessage(FrameType::kPartRequest, request));
  }
  RequireTooSlow(ReceiveEnd(control.get()), "accepted no data for 500 ms");
  // The target may ping on, but its snapshot is released.
  REQUIRE_OK(control->SendMessage(FrameType::kPing, Ping()));
  RequireTooSlow(server.Report(0).status, "accepted no data for 500 ms");
}

TEST_CASE("Stats count what the source reads", "[bad_input][stall]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  TestServer server(ServeSample(dir / "source"));
  std::unique_ptr<Channel> control;
  std::unique_ptr<Channel> lane;
  Opened opened;
  uint32_t parts = 0;
  Finish totals;
  REQUIRE_OK(OpenSample(server.address(), &opened, &control, &parts));
  REQUIRE_OK(DialLane(server.address(), opened.transfer_id, 0, &lane));
  REQUIRE_OK(TakeParts(lane.get(), parts, &totals));
  Stats stats;
  Frame frame;
  while (stats.read_bytes < totals.families[0].key_value_bytes) {
    REQUIRE_OK(
        control->Receive(WaitLimit::Within(milliseconds(60'000)), &frame));
    if (frame.type == FrameType::kStats) {
      REQUIRE_OK(Decode(frame.payload, &stats));
    }
    REQUIRE(frame.type != FrameType::kEnd);
  }
}

}  // namespace
}  // namespace sstferry::stall_test
