// Tests wrong, hostile and vanished peers of a server that also serves a good
// pull, and how both sides report each end of a transfer.
#include <filesystem>
#include <future>

#include "format/frame.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/relay.h"
#include "tests/support/retained_support.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::server_test {
namespace {

using std::chrono::milliseconds;

PullOptions PullFromServer(const HostPort& where, const std::string& target) {
  PullOptions options = PullFrom(where, target);
  options.timeouts.peer = milliseconds(60'000);
  return options;
}

// A server with a sample database. RequireGoodPull() checks that it still
// works.
struct Bench {
  explicit Bench(ServeOptions (*tweak)(ServeOptions) = nullptr) {
    SampleShape shape;
    shape.entries = 1000;
    MakeSampleDatabase(dir / "source", shape);
    const ServeOptions options = ServeSample(dir / "source");
    server = std::make_unique<TestServer>(tweak ? tweak(options) : options);
  }
  void RequireGoodPull() {
    const std::string target = dir / ("good" + std::to_string(pulls++));
    const Summary summary =
        RunPull(PullFromServer(server->address(), target));
    REQUIRE_OK(summary.status);
    REQUIRE(summary.entries == 1000);
  }
  ScratchDir dir;
  std::unique_ptr<TestServer> server;
  int pulls = 0;
};

TEST_CASE("A server answers unknown protocols with a sentence and continues",
          "[bad_input][peer]") {
  Bench bench;
  const HostPort where = bench.server->address();
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
        std::string(300'000, '\xa5'), std::string("SSH-2.0-x\r\n"),
        std::string(200, '\0')}) {
    const std::string answer = SendRaw(where, bytes);
    INFO(bytes.substr(0, 10));
    REQUIRE(answer.find("is sstferry at the other end?") != std::string::npos);
    bench.RequireGoodPull();
  }
  REQUIRE(bench.server->WaitForLog("handshake with 127.0.0.1"));
}

// Requires that the connection ends. Only the server can end it.
void RequireClosed(Connection* connection) {
  rocksdb::Status status;
  for (size_t got = 1; status.ok() && got > 0;) {
    char buffer[4096];
    status = connection->Read(buffer, sizeof(buffer),
                              WaitLimit::Within(milliseconds(60'000)), &got);
  }
  INFO(status.ToString());
  REQUIRE_FALSE(status.IsTimedOut());
}

TEST_CASE("A server drops a peer that sends nothing, half a frame or too much",
          "[bad_input][peer]") {
  Bench bench([](ServeOptions options) {
    options.handshake_timeout = milliseconds(5000);
    return options;
  });
  const HostPort where = bench.server->address();
  // All connect at once. The server closes each of them after the handshake
  // timeout.
  std::vector<std::unique_ptr<Connection>> silent;
  std::string header(kFrameHeaderBytes, '\0');
  EncodeFrameHeader(FrameType::kHello, 0, nullptr, 0, header.data(), nullptr);
  for (int i = 0; i < 20; ++i) {
    std::unique_ptr<Connection> connection;
    REQUIRE_OK(MakeTcpDialer(where)->Dial(
        WaitLimit::Within(milliseconds(60'000)), &connection));
    const rocksdb::Slice half(header.data(), 20);
    if (i % 2 != 0) {
      REQUIRE_OK(connection->Write(&half, 1,
                                   WaitLimit::Within(milliseconds(60'000))));
    }
    silent.push_back(std::move(connection));
  }
  bench.RequireGoodPull();
  for (const std::unique_ptr<Connection>& connection : silent) {
    RequireClosed(connection.get());
  }
  // A valid header that announces a Hello of one megabyte.
  const std::string payload(1u << 20, 'x');
  const rocksdb::Slice part(payload);
  EncodeFrameHeader(FrameType::kHello, 0, &part, 1, header.data(), nullptr);
  const std::string answer = SendRaw(where, header);
  REQUIRE(answer.find("bytes of payload at this point") != std::string::npos);
}

TEST_CASE("A server whose connections are all silent keeps its memory bounded",
          "[bad_input][peer]") {
  Bench bench([](ServeOptions options) {
    options.max_connections = 4;
    options.handshake_timeout = milliseconds(2000);
    return options;
  });
  std::vector<std::unique_ptr<Connection>> open;
  for (int i = 0; i < 8; ++i) {
    std::unique_ptr<Connection> connection;
    REQUIRE_OK(MakeTcpDialer(bench.server->address())
                   ->Dial(WaitLimit::Within(milliseconds(60'000)),
                          &connection));
    open.push_back(std::move(connection));
  }
  for (const std::unique_ptr<Connection>& connection : open) {
    RequireClosed(connection.get());
  }
  REQUIRE(bench.server->WaitForLog("too many newer connections"));
  bench.RequireGoodPull();
}

TEST_CASE("A server and a pull without a common protocol report both versions",
          "[bad_input][peer]") {
  Bench bench;
  std::unique_ptr<Connection> connection;
  REQUIRE_OK(MakeTcpDialer(bench.server->address())
                 ->Dial(WaitLimit::Within(milliseconds(60'000)), &connection));
  Channel channel(std::move(connection));
  Hello hello;
  hello.software = "sstferry 99";
  hello.oldest_version = 98;
  hello.newest_version = 99;
  HelloAck ack;
  const rocksdb::Status status = ClientHandshake(
      &channel, hello, WaitLimit::Within(milliseconds(60'000)), &ack);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kIncompatible);
  REQUIRE(status.ToString().find("speaks 98 to 99") != std::string::npos);
  REQUIRE(bench.server->WaitForLog("no common protocol version"));
  bench.RequireGoodPull();

  // The opposite case: a source with a newer protocol.
  FakeSource source([](Channel* peer) {
    Hello theirs;
    MustWork(peer->ReceiveMessage(FrameType::kHello,
                                    WaitLimit::Within(milliseconds(60'000)),
                                    &theirs));
    HelloAck future;
    future.version = 99;
    future.software = "sstferry 99";
    peer->SendMessage(FrameType::kHelloAck, future).PermitUncheckedError();
    ReceiveEnd(peer).PermitUncheckedError();
  });
  const Summary summary =
      RunPull(PullFromServer(source.address(), bench.dir / "target"));
  INFO(summary.status.ToString());
  REQUIRE(EndStateOf(summary.status) == EndState::kIncompatible);
  REQUIRE(summary.status.ToString().find("sstferry 99): protocol version") !=
          std::string::npos);
  REQUIRE(ExitCodeOf(EndState::kIncompatible) == 1);
}

TEST_CASE("An unknown NAME is refused on both sides", "[bad_input][peer]") {
  Bench bench;
  PullOptions options =
      PullFromServer(bench.server->address(), bench.dir / "target");
  options.source.name = "nobody";
  const Summary summary = RunPull(options);
  REQUIRE(EndStateOf(summary.status) == EndState::kRefused);
  REQUIRE(summary.status.ToString().find(
              "no database named 'nobody' is served here") !=
          std::string::npos);
  bench.RequireGoodPull();
  REQUIRE(bench.server->WaitForLog("REFUSED: no database named 'nobody'"));
}

TEST_CASE("A target that requests something forbidden is told so",
          "[bad_input][peer]") {
  Bench bench;
  const HostPort where = bench.server->address();
  std::unique_ptr<Channel> control;
  std::unique_ptr<Channel> lane;
  Opened opened;
  const auto told = [](Channel* channel, EndState state,
                       const std::string& sentence) {
    const rocksdb::Status status = ReceiveEnd(channel);
    INFO(sentence << ": " << status.ToString());
    REQUIRE(EndStateOf(status) == state);
    REQUIRE(status.ToString().find(sentence) != std::string::npos);
  };
  SECTION("a lane of an unknown transfer") {
    REQUIRE_OK(DialLane(where, TransferId{}, 0, &lane));
    told(lane.get(), EndState::kSnapshotGone, "no transfer");
  }
  SECTION("a file that belongs to the database, or does not exist") {
    for (const char* name : {"CURRENT", "../passwd", "000008.sst", "a/b", ""}) {
      INFO(name);
      REQUIRE_OK(OpenSample(where, &opened, &control));
      REQUIRE_OK(control->SendMessage(FrameType::kOtherFileRequest,
                                      OtherFileRequest{name, 0}));
      told(control.get(), EndState::kDenied, "a name that may be copied");
    }
  }
  SECTION("a part that is not in the plan") {
    REQUIRE_OK(OpenSample(where, &opened, &control));
    REQUIRE_OK(DialLane(where, opened.transfer_id, 0, &lane));
    PartRequest request;
    request.part_id = 200'000;
    REQUIRE_OK(lane->SendMessage(FrameType::kPartRequest, request));
    told(control.get(), EndState::kCorrupt, "expected a part number below");
    REQUIRE(EndStateOf(bench.server->Report(0).status) == EndState::kCorrupt);
  }
  SECTION("a family that is not in the plan") {
    REQUIRE_OK(OpenSample(where, &opened, &control));
    REQUIRE_OK(DialLane(where, opened.transfer_id, 0, &lane));
    DigestRequest request;
    request.family = 77;
    REQUIRE_OK(lane->SendMessage(FrameType::kDigestRequest, request));
    told(control.get(), EndState::kCorrupt,
         "expected a column family number below");
  }
  SECTION("an interval whose end is before its begin") {
    REQUIRE_OK(OpenSample(where, &opened, &control));
    REQUIRE_OK(DialLane(where, opened.transfer_id, 0, &lane));
    DigestRequest request;
    request.interval.begin = "z";
    request.interval.end = "a";
    REQUIRE_OK(lane->SendMessage(FrameType::kDigestRequest, request));
    DigestReply reply;
    // The source finds no entries or refuses. The server continues.
    lane->ReceiveMessage(FrameType::kDigestReply,
                         WaitLimit::Within(milliseconds(60'000)), &reply)
        .PermitUncheckedError();
    REQUIRE(reply.entries == 0);
  }
  SECTION("a lane that was not granted") {
    REQUIRE_OK(OpenSample(where, &opened, &control));
    REQUIRE_OK(DialLane(where, opened.transfer_id, 40, &lane));
    told(lane.get(), EndState::kRefused, "expected a lane number below 2");
  }
  SECTION("a lane twice, so that the second takes over") {
    REQUIRE_OK(OpenSample(where, &opened, &control));
    REQUIRE_OK(DialLane(where, opened.transfer_id, 0, &lane));
    PartRequest request;
    REQUIRE_OK(lane->SendMessage(FrameType::kPartRequest, request));
    Frame frame;
    REQUIRE_OK(lane->Receive(WaitLimit::Within(milliseconds(60'000)), &frame));
    std::unique_ptr<Channel> second;
    REQUIRE_OK(DialLane(where, opened.transfer_id, 0, &second));
    told(lane.get(), EndState::kDeadPeer, "closed the connection");
    Finish finish;
    REQUIRE_OK(TakeParts(second.get(), 1, &finish));
  }
  SECTION("totals that differ from the source's") {
    uint32_t parts = 0;
    Finish finish;
    REQUIRE_OK(OpenSample(where, &opened, &control, &parts));
    REQUIRE_OK(DialLane(where, opened.transfer_id, 0, &lane));
    REQUIRE_OK(TakeParts(lane.get(), parts, &finish));
    finish.families[0].entries = 5;
    REQUIRE_OK(control->SendMessage(FrameType::kFinish, finish));
    told(control.get(), EndState::kCorrupt, "the target has 5");
    REQUIRE(EndStateOf(bench.server->Report(0).status) == EndState::kCorrupt);
  }
  SECTION("correct totals of all parts but one") {
    uint32_t parts = 0;
    Finish finish;
    REQUIRE_OK(OpenSample(where, &opened, &control, &parts));
    REQUIRE(parts > 1);
    REQUIRE_OK(DialLane(where, opened.transfer_id, 0, &lane));
    REQUIRE_OK(TakeParts(lane.get(), parts - 1, &finish));
    REQUIRE_OK(control->SendMessage(FrameType::kFinish, finish));
    told(control.get(), EndState::kCorrupt, "totals arrived too early: 1 of ");
    REQUIRE(EndStateOf(bench.server->Report(0).status) == EndState::kCorrupt);
  }
  SECTION("totals before anything is open") {
    REQUIRE_OK(DialControl(where, &control));
    REQUIRE_OK(control->SendMessage(FrameType::kFinish, Finish()));
    told(control.get(), EndState::kCorrupt, "unexpected frame");
  }
  SECTION("a chunk that is sent to the source") {
    REQUIRE_OK(DialControl(where, &control));
    REQUIRE_OK(control->Send(FrameType::kChunkData, "bytes"));
    told(control.get(), EndState::kCorrupt, "unexpected frame");
  }
  SECTION("a second open") {
    REQUIRE_OK(OpenSample(where, &opened, &control));
    OpenRequest request;
    request.database = "db";
    request.chunk_bytes = 1u << 20;
    REQUIRE_OK(control->SendMessage(FrameType::kOpenRequest, request));
    told(control.get(), EndState::kCorrupt, "unexpected frame");
  }
  lane.reset();
  control.reset();
  bench.RequireGoodPull();
}

TEST_CASE("A finished transfer keeps no lane and no snapshot",
          "[bad_input][peer]") {
  Bench bench;
  std::unique_ptr<Channel> control;
  std::unique_ptr<Channel> lane;
  Opened opened;
  uint32_t parts = 0;
  REQUIRE_OK(OpenSample(bench.server->address(), &opened, &control, &parts));
  REQUIRE_OK(
      DialLane(bench.server->address(), opened.transfer_id, 0, &lane));
  Finish finish;
  REQUIRE_OK(TakeParts(lane.get(), parts, &finish));
  REQUIRE_OK(FinishWith(control.get(), finish));
  REQUIRE_OK(bench.server->Report(0).status);
  // This side keeps the lane open, but the source closes it.
  Frame frame;
  const rocksdb::Status status =
      lane->Receive(WaitLimit::Within(milliseconds(60'000)), &frame);
  INFO(status.ToString());
  REQUIRE(status.IsIOError());
}

TEST_CASE("A target's failure is also the source's, with the same message",
          "[bad_input][end_state]") {
  Bench bench;
  // The lanes close before the target sends the reason. The report must have
  // the reason, not the lost lanes.
  for (size_t i = 0; i < 5; ++i) {
    std::unique_ptr<Channel> control;
    std::unique_ptr<Channel> lanes[2];
    Opened opened;
    REQUIRE_OK(OpenSample(bench.server->address(), &opened, &control));
    for (uint32_t lane = 0; lane < 2; ++lane) {
      REQUIRE_OK(DialLane(bench.server->address(), opened.transfer_id, lane,
                          &lanes[lane]));
      PartRequest request;
      request.part_id = lane;
      REQUIRE_OK(lanes[lane]->SendMessage(FrameType::kPartRequest, request));
      lanes[lane]->Close();
    }
    const bool agreed = i == 4;
    if (!agreed) {
      SendEnd(control.get(), MakeStatus(EndState::kNoSpace, "disk full"),
              "target");
    }
    const TransferReport report = [&] {
      if (agreed) {
        control.reset();  // closed without an End
      }
      return bench.server->Report(i);
    }();
    INFO(report.status.ToString());
    REQUIRE(EndStateOf(report.status) ==
            (agreed ? EndState::kDeadPeer : EndState::kNoSpace));
  }
}

TEST_CASE("A failure after the totals agreed is no success at the source",
          "[bad_input][end_state]") {
  Bench bench;
  std::unique_ptr<Channel> control;
  std::unique_ptr<Channel> lane;
  Opened opened;
  uint32_t parts = 0;
  REQUIRE_OK(OpenSample(bench.server->address(), &opened, &control, &parts));
  REQUIRE_OK(
      DialLane(bench.server->address(), opened.transfer_id, 0, &lane));
  Finish finish;
  REQUIRE_OK(TakeParts(lane.get(), parts, &finish));
  REQUIRE_OK(AgreeOnTotals(control.get(), finish));
  SendEnd(control.get(), MakeStatus(EndState::kCorrupt, "verify differs"),
          "target");
  const TransferReport report = bench.server->Report(0);
  REQUIRE(EndStateOf(report.status) == EndState::kCorrupt);
  REQUIRE(report.status.ToString().find("verify differs") !=
          std::string::npos);
}

TEST_CASE("A target that opened a database and sends nothing more is a dead "
          "peer",
          "[bad_input][end_state]") {
  Bench bench([](ServeOptions options) {
    options.timeouts.peer = milliseconds(8000);  // enough for the snapshot, too
    return options;
  });
  Opened opened;
  std::unique_ptr<Channel> control;
  REQUIRE_OK(OpenSample(bench.server->address(), &opened, &control));
  const rocksdb::Status told = ReceiveEnd(control.get());
  INFO(told.ToString());
  REQUIRE(EndStateOf(told) == EndState::kDeadPeer);
  REQUIRE(told.ToString().find("no byte for") != std::string::npos);
  REQUIRE(EndStateOf(bench.server->Report(0).status) == EndState::kDeadPeer);
  bench.RequireGoodPull();
}

TEST_CASE("A peer that vanishes silently is dead after its timeout",
          "[bad_input][end_state]") {
  Bench bench([](ServeOptions options) {
    options.max_rate_bytes_per_sec = 100'000;
    options.timeouts.peer = milliseconds(5000);
    return options;
  });
  Relay relay(bench.server->address());
  PullOptions options =
      PullFromServer(relay.address(), bench.dir / "target");
  options.timeouts.peer = milliseconds(5000);
  std::future<Summary> pull = std::async(
      std::launch::async, [&options] { return RunPull(options); });
  REQUIRE(relay.WaitForBytes(Relay::kToClient, 50'000));
  relay.SetDrop(Relay::kToClient, true);
  relay.SetDrop(Relay::kToTarget, true);
  const auto start = std::chrono::steady_clock::now();
  const Summary summary = pull.get();
  const TransferReport report = bench.server->Report(0);
  const auto took = std::chrono::steady_clock::now() - start;
  INFO(summary.status.ToString() << " / " << report.status.ToString());
  REQUIRE(EndStateOf(summary.status) == EndState::kDeadPeer);
  REQUIRE(EndStateOf(report.status) == EndState::kDeadPeer);
  REQUIRE(ExitCodeOf(EndState::kDeadPeer) == 4);
  // The target may learn it later: the source first waits for last messages,
  // then sends an End.
  REQUIRE(took < milliseconds(60'000));  // other timeouts are longer
  REQUIRE(std::filesystem::exists(bench.dir / "target.sstferry"));
  REQUIRE_FALSE(std::filesystem::exists(bench.dir / "target"));
}

TEST_CASE("A pull can be cancelled in any phase, and tells the source",
          "[bad_input][end_state]") {
  Bench bench([](ServeOptions options) {
    options.max_rate_bytes_per_sec = 200'000;
    return options;
  });
  Relay relay(bench.server->address());
  PullOptions options =
      PullFromServer(relay.address(), bench.dir / "target");
  options.timeouts.peer = milliseconds(60'000);
  const bool stall = GENERATE(true, false);
  const std::unique_ptr<Operation> pull = MakePull(options);
  Summary summary;
  std::future<rocksdb::Status> run = std::async(
      std::launch::async, [&] { return pull->Run(&summary); });
  REQUIRE(relay.WaitForBytes(Relay::kToClient, 50'000));
  if (stall) {
    relay.SetStall(Relay::kToClient, true);
  }
  const auto start = std::chrono::steady_clock::now();
  pull->Cancel();
  const rocksdb::Status status = run.get();
  REQUIRE(EndStateOf(status) == EndState::kCancelled);
  REQUIRE(std::chrono::steady_clock::now() - start < milliseconds(40'000));
  relay.SetStall(Relay::kToClient, false);
  const TransferReport report = bench.server->Report(0);
  INFO(report.status.ToString());
  REQUIRE(EndStateOf(report.status) == EndState::kCancelled);
  REQUIRE(std::filesystem::exists(bench.dir / "target.sstferry"));
}

TEST_CASE("A pull that waits for a silent source can be cancelled",
          "[bad_input][end_state]") {
  ScratchDir dir;
  std::promise<void> reached;
  FakeSource source([&reached](Channel* channel) {
    Frame frame;
    if (channel->Receive(WaitLimit::Within(milliseconds(60'000)), &frame)
            .ok()) {
      reached.set_value();
    }
    ReceiveEnd(channel).PermitUncheckedError();
  });
  PullOptions options = PullFromServer(source.address(), dir / "target");
  options.timeouts.connect = milliseconds(60'000);
  const std::unique_ptr<Operation> pull = MakePull(options);
  Summary summary;
  std::future<rocksdb::Status> run = std::async(
      std::launch::async, [&] { return pull->Run(&summary); });
  reached.get_future().wait();
  const auto start = std::chrono::steady_clock::now();
  pull->Cancel();
  REQUIRE(EndStateOf(run.get()) == EndState::kCancelled);
  REQUIRE(std::chrono::steady_clock::now() - start < milliseconds(40'000));
}

}  // namespace
}  // namespace sstferry::server_test
