// Tests the resources that peers cost a server when they are gone or do
// nothing.
#include <unistd.h>

#include <array>
#include <fstream>
#include <future>

#include "pipeline/pull/source_session.h"
#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/sample_database.h"
#include "tests/support/sanitizer.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::gone_peer_test {
namespace {

using rocksdb::Slice;
using std::chrono::milliseconds;

WaitLimit Soon() { return WaitLimit::Within(milliseconds(60'000)); }

size_t Threads() { return NamesOf("/proc/self/task").size(); }

uint64_t ResidentBytes() {
  std::ifstream in("/proc/self/statm");
  uint64_t pages = 0;
  in >> pages >> pages;
  return pages * static_cast<uint64_t>(getpagesize());
}

TEST_CASE("Peers that are refused repeatedly do not fill the log",
          "[bad_input][peer][gone]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  TestServer server(ServeSample(dir / "source"));
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 300; ++i) {
    std::unique_ptr<Channel> control;
    REQUIRE_OK(DialControl(server.address(), &control));
    OpenRequest request;
    request.database = "nobody";
    REQUIRE_OK(control->SendMessage(FrameType::kOpenRequest, request));
    REQUIRE(EndStateOf(ReceiveEnd(control.get())) == EndState::kRefused);
  }
  server.Stop();  // after this, all sessions have logged their ends
  const auto windows = static_cast<size_t>(
      (std::chrono::steady_clock::now() - begin) / std::chrono::seconds(10));
  REQUIRE(server.LinesWith("no database named 'nobody'") >= 50);
  REQUIRE(server.LinesWith("no database named 'nobody'") <=
          150 * (1 + windows));
}

std::string FrameBytes(FrameType type, uint64_t sequence,
                       const std::string& payload) {
  std::array<char, kFrameHeaderBytes> header{};
  const Slice part(payload);
  EncodeFrameHeader(type, sequence, &part, 1, header.data(), nullptr);
  return std::string(header.data(), header.size()) + payload;
}

TEST_CASE("Frames that are announced but never sent take little memory",
          "[bad_input][peer][gone]") {
  if (test::kSanitized) {
    return;  // the sanitizer uses much more memory
  }
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  TestServer server(ServeSample(dir / "source"));
  std::string hello;
  Encode(MakeHello(), &hello);
  const std::string begun =
      FrameBytes(FrameType::kOpenRequest, 1, std::string(kMaxPayloadBytes, 'x'))
          .substr(0, 1000);
  std::vector<std::unique_ptr<Connection>> open(200);
  const uint64_t before = ResidentBytes();
  for (std::unique_ptr<Connection>& connection : open) {
    REQUIRE_OK(MakeTcpDialer(server.address())->Dial(Soon(), &connection));
    const std::string first = FrameBytes(FrameType::kHello, 0, hello);
    const std::array<Slice, 2> parts{Slice(first), Slice(begun)};
    REQUIRE_OK(connection->Write(parts.data(), parts.size(), Soon()));
    char answer = 0;
    size_t got = 0;
    REQUIRE_OK(connection->Read(&answer, 1, Soon(), &got));
    REQUIRE(got == 1);
  }
  // When this honest pull is done, the server has read the frames of all peers
  // before it.
  REQUIRE_OK(RunPull(PullFrom(server.address(), dir / "target")).status);
  const uint64_t after = ResidentBytes();
  CAPTURE(before, after);
  REQUIRE(after < before + (80u << 20));
}

TEST_CASE("The lanes of a target that is gone end their threads, and the "
          "target can resume",
          "[bad_input][peer][gone]") {
  ScratchDir dir;
  SampleShape shape;
  shape.entries = 8000;
  MakeSampleDatabase(dir / "source", shape);
  ServeOptions serve = ServeSample(dir / "source");
  serve.snapshot_ttl = std::chrono::seconds(60);
  serve.leases.tick = milliseconds(20);
  TestServer server(serve);
  std::unique_ptr<Channel> control;
  std::unique_ptr<Channel> lane;
  Opened opened;
  uint32_t parts = 0;
  const size_t before = Threads() + 1;  // RocksDB's timer thread stays
  REQUIRE_OK(OpenSample(server.address(), &opened, &control, &parts));
  for (uint32_t number = 0; number < 2; ++number) {
    REQUIRE_OK(
        DialLane(server.address(), opened.transfer_id, number, &lane));
    PartRequest request;
    request.part_id = number;
    REQUIRE_OK(lane->SendMessage(FrameType::kPartRequest, request));
    Frame frame;
    REQUIRE_OK(lane->Receive(Soon(), &frame));
    REQUIRE(frame.type == FrameType::kChunkBegin);
    lane.reset();  // during a chunk
  }
  REQUIRE(Threads() > before);
  control.reset();
  std::promise<void> never;
  const std::future<void> timer = never.get_future();
  for (int i = 0; i < 6000 && Threads() > before; ++i) {
    timer.wait_for(milliseconds(10));
  }
  REQUIRE(Threads() <= before);
  REQUIRE_OK(DialControl(server.address(), &control));
  OpenRequest request;
  request.database = "db";
  request.lanes = 2;
  request.chunk_bytes = 256u << 10;
  request.snapshot_use = SnapshotUse::kResume;
  request.named_transfer = opened.transfer_id;
  REQUIRE_OK(control->SendMessage(FrameType::kOpenRequest, request));
  Frame frame;
  do {
    REQUIRE_OK(control->Receive(Soon(), &frame));
    REQUIRE(frame.type != FrameType::kEnd);
  } while (frame.type != FrameType::kPlanEnd);
  REQUIRE_OK(DialLane(server.address(), opened.transfer_id, 0, &lane));
  Finish totals;
  REQUIRE_OK(TakeParts(lane.get(), parts, &totals));
  REQUIRE(totals.families[0].entries == 8000);
}

}  // namespace
}  // namespace sstferry::gone_peer_test
