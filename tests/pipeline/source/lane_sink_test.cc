// A lane's sink and link, which send to a target over the memory transport.
#include "pipeline/serve/lane_sink.h"

#include <future>

#include "format/limits.h"
#include "sstferry/transport.h"
#include "tests/support/catch.h"
#include "tests/support/sample_bytes.h"

namespace sstferry::lane_sink_test {
namespace {

using rocksdb::Status;
using test::RandomBytes;

WaitLimit Soon() { return WaitLimit::Within(std::chrono::seconds(60)); }

// Both ends of one lane.
struct Lane {
  MemoryTransport transport = MakeMemoryTransport(16u << 20);
  std::unique_ptr<Channel> here;  // the source's end
  std::unique_ptr<Channel> target;
  ServeOptions serve;
  ServedDatabase database;
  ServerShares shares{0};
  std::unique_ptr<Transfer> transfer;
  StageTotals stages;
  StageClock clock{&stages, Stage::kIdle};
  std::unique_ptr<HoldBack::Worker> worker;
  LaneCompressor compressor{1};
  std::unique_ptr<LaneLink> link;
  std::unique_ptr<LaneSink> sink;
  std::vector<PartEnd> ended;

  Lane() {
    serve.timeouts.stall = std::chrono::milliseconds(200);
    serve.timeouts.peer = std::chrono::milliseconds(100);
    std::unique_ptr<Connection> dialed;
    std::unique_ptr<Connection> accepted;
    REQUIRE_OK(transport.dialer->Dial(Soon(), &dialed));
    REQUIRE_OK(transport.listener->Accept(&accepted));
    here = std::make_unique<Channel>(std::move(accepted));
    target = std::make_unique<Channel>(std::move(dialed));
    OpenRequest request;
    request.lanes = 1;
    transfer = std::make_unique<Transfer>(database, serve, request, Hello(),
                                          "test", &shares);
    transfer->set_control(here.get());
    worker = std::make_unique<HoldBack::Worker>(
        transfer->pace()->hold_back().get(), &clock);
    link = std::make_unique<LaneLink>(transfer.get(), here.get());
    sink = std::make_unique<LaneSink>(
        transfer.get(), link.get(), &clock, worker.get(), &compressor,
        [this](const PartEnd& end, const Totals&) { ended.push_back(end); });
    sink->BeginPart(PartRequest());
  }

  Status SendChunk(const ChunkBegin& begin, const std::string& bytes) {
    Status status = sink->Begin(begin);
    if (status.ok()) status = sink->Append(bytes);
    ChunkEnd end;
    end.ordinal = begin.ordinal;
    end.file_bytes = begin.first_byte + bytes.size();
    end.entries = 7;
    return status.ok() ? sink->End(end) : status;
  }
  // A chunk as the target receives it.
  struct Received {
    ChunkBegin begin;
    std::string bytes;
    std::vector<size_t> frames;
    ChunkDigest digest;
    ChunkEnd end;
  };
  Received ReceiveChunk() {
    Received chunk;
    REQUIRE_OK(target->ReceiveMessage(FrameType::kChunkBegin, Soon(),
                                      &chunk.begin));
    Frame frame;
    REQUIRE_OK(target->Receive(Soon(), &frame));
    while (frame.type == FrameType::kChunkData) {
      chunk.bytes += frame.payload.ToString();
      chunk.frames.push_back(frame.payload.size());
      chunk.digest.AddFrame(frame.digest);
      REQUIRE_OK(target->Receive(Soon(), &frame));
    }
    REQUIRE(frame.type == FrameType::kChunkEnd);
    REQUIRE_OK(Decode(frame.payload, &chunk.end));
    return chunk;
  }
  void Acknowledge() {
    REQUIRE_OK(
        target->SendMessage(FrameType::kChunkAck, ChunkAck(), Soon()));
  }
};

TEST_CASE("LaneSink sends chunks with the digest of the frames, and the part's "
          "totals",
          "[source][lane]") {
  Lane lane;
  const std::string first = RandomBytes(3'000'000, 1);
  const std::string second = RandomBytes(1'000, 2);
  ChunkBegin begin;
  REQUIRE_OK(lane.SendChunk(begin, first));
  begin.ordinal = 1;
  REQUIRE_OK(lane.SendChunk(begin, second));
  REQUIRE_OK(lane.sink->EndPart());
  PartDigest chain;
  for (const std::string* bytes : {&first, &second}) {
    const Lane::Received chunk = lane.ReceiveChunk();
    REQUIRE((chunk.bytes == *bytes));
    REQUIRE(chunk.frames.front() ==
            std::min<size_t>(bytes->size(), kMaxPayloadBytes));
    REQUIRE(chunk.end.digest == chunk.digest.Finish());
    chain.AddChunk(chunk.end.digest);
  }
  PartEnd end;
  REQUIRE_OK(lane.target->ReceiveMessage(FrameType::kPartEnd, Soon(), &end));
  REQUIRE(end.totals.chunks == 2);
  REQUIRE(end.totals.entries == 14);
  REQUIRE(end.totals.sst_bytes == first.size() + second.size());
  REQUIRE(end.chain == chain.Finish());
  REQUIRE(lane.ended.size() == 1);
}

TEST_CASE("LaneSink resumes a unit with small frames at first",
          "[source][lane]") {
  Lane lane;
  const std::string rest = RandomBytes(3'000'000, 3);
  ChunkBegin begin;
  begin.kind = PartKind::kUnit;
  begin.first_byte = 1234;
  REQUIRE_OK(lane.SendChunk(begin, rest));
  const Lane::Received chunk = lane.ReceiveChunk();
  REQUIRE(chunk.begin.first_byte == 1234);
  REQUIRE((chunk.bytes == rest));
  REQUIRE(chunk.end.digest == chunk.digest.Finish());
  REQUIRE(chunk.end.file_bytes == 1234 + rest.size());
  const size_t careful =
      LaneSink::kCarefulBytes / LaneSink::kCarefulFrameBytes;
  REQUIRE(chunk.frames[careful - 1] == LaneSink::kCarefulFrameBytes);
  REQUIRE(chunk.frames[careful] > LaneSink::kCarefulFrameBytes);
}

TEST_CASE("LaneSink fails a chunk whose size differs from its builder's",
          "[source][lane]") {
  Lane lane;
  REQUIRE_OK(lane.sink->Begin(ChunkBegin()));
  REQUIRE_OK(lane.sink->Append("abc"));
  ChunkEnd end;
  end.file_bytes = 4;
  REQUIRE(EndStateOf(lane.sink->End(end)) == EndState::kInternal);
}

TEST_CASE("LaneSink fails at once when its connection is lost",
          "[source][lane]") {
  Lane lane;
  REQUIRE_OK(lane.sink->Begin(ChunkBegin()));
  lane.target->Close();
  REQUIRE_FALSE(lane.sink->Append(RandomBytes(20'000'000, 4)).ok());
  REQUIRE(lane.link->lost());
}

TEST_CASE("A target acknowledges each chunk that was sent, and no other",
          "[source][lane]") {
  Lane lane;
  LaneRequest request;
  SECTION("more acknowledgements than chunks") {
    REQUIRE_OK(lane.SendChunk(ChunkBegin(), "abc"));
    lane.Acknowledge();
    lane.Acknowledge();
    REQUIRE(EndStateOf(lane.link->Receive(&request)) == EndState::kDenied);
    REQUIRE_FALSE(lane.link->lost());
  }
  SECTION("a missing acknowledgement for too long") {
    REQUIRE_OK(lane.SendChunk(ChunkBegin(), "abc"));
    REQUIRE(EndStateOf(lane.link->Receive(&request)) == EndState::kTooSlow);
    REQUIRE_FALSE(lane.link->lost());
  }
  SECTION("after all of them, the target may be silent for long") {
    REQUIRE_OK(lane.SendChunk(ChunkBegin(), "abc"));
    lane.Acknowledge();
    std::future<Status> received = std::async(
        std::launch::async, [&] { return lane.link->Receive(&request); });
    REQUIRE(received.wait_for(std::chrono::milliseconds(600)) ==
            std::future_status::timeout);
    REQUIRE_OK(lane.target->SendMessage(FrameType::kPartRequest, PartRequest(),
                                        Soon()));
    REQUIRE_OK(received.get());
    REQUIRE(request.type == FrameType::kPartRequest);
  }
}

TEST_CASE("A silent lane ends once its target has left", "[source][lane]") {
  Lane lane;
  REQUIRE(lane.transfer->Leave(lane.here.get()));
  LaneRequest request;
  REQUIRE_FALSE(lane.link->Receive(&request).ok());
  REQUIRE(lane.link->lost());
}

TEST_CASE("A target has at most a few unanswered requests", "[source][lane]") {
  Lane lane;
  for (int i = 0; i < 100; ++i) {
    REQUIRE_OK(lane.target->SendMessage(FrameType::kPartRequest, PartRequest(),
                                        Soon()));
  }
  // The source reads no more requests while it sends. The others stay in the
  // sockets' buffers.
  REQUIRE_OK(lane.link->TakeArrived());
  REQUIRE_OK(lane.SendChunk(ChunkBegin(), "abc"));
}

}  // namespace
}  // namespace sstferry::lane_sink_test
