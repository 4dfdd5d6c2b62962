// A lane's sink whose target loses connections, over the memory transport.
#include "pipeline/serve/lane_sink.h"

#include <future>
#include <map>

#include "sstferry/transport.h"
#include "tests/support/catch.h"
#include "tests/support/sample_bytes.h"

namespace sstferry {
namespace {

using rocksdb::Status;
using test::RandomBytes;

WaitLimit Soon() { return WaitLimit::Within(std::chrono::seconds(10)); }

// The target of one lane: what it holds of the open chunk.
struct Target {
  MemoryTransport transport = MakeMemoryTransport(64u << 10);
  std::unique_ptr<Channel> here;  // the source's end
  std::unique_ptr<Channel> channel;
  std::string bytes;
  ChunkDigest digest;
  uint64_t frames = 0;
  Frame last;

  void Connect() {
    std::unique_ptr<Connection> dialed;
    std::unique_ptr<Connection> accepted;
    REQUIRE_OK(transport.dialer->Dial(Soon(), &dialed));
    REQUIRE_OK(transport.listener->Accept(&accepted));
    here = std::make_unique<Channel>(std::move(accepted));
    channel = std::make_unique<Channel>(std::move(dialed));
  }
  ChunkBegin ReceiveBegin() {
    ChunkBegin begin;
    REQUIRE_OK(
        channel->ReceiveMessage(FrameType::kChunkBegin, Soon(), &begin));
    return begin;
  }
  // Data, acknowledged or not, until at least so much is there or other frames
  // come.
  void ReceiveData(uint64_t until, bool acknowledge = true) {
    last.type = FrameType::kChunkData;
    while (bytes.size() < until) {
      REQUIRE_OK(channel->Receive(Soon(), &last));
      if (last.type != FrameType::kChunkData) {
        return;
      }
      bytes += last.payload.ToString();
      digest.AddFrame(last.digest);
      frames++;
      ChunkAck ack;
      ack.bytes = bytes.size();
      if (acknowledge) {
        REQUIRE_OK(channel->SendMessage(FrameType::kChunkAck, ack, Soon()));
      }
    }
  }
  void Ask(PartRequest request) {
    REQUIRE_OK(channel->SendMessage(FrameType::kPartRequest, request, Soon()));
  }
  // What it says on another connection.
  void AskForRest() {
    PartRequest request;
    request.open_bytes = bytes.size();
    request.open_frames = frames;
    Ask(request);
  }
};

// The source of one lane, its thread in the midst of a chunk.
// A chunk that can be read again.
class KeptString : public KeptChunk {
 public:
  explicit KeptString(std::string bytes) : bytes_(std::move(bytes)) {}
  Status Read(uint64_t at, size_t size, std::string* out) const override {
    *out = bytes_.substr(at, std::min<size_t>(size, 70'000));
    return Status::OK();
  }

 private:
  const std::string bytes_;
};

struct Source {
  ServeOptions serve;
  ServedDatabase database;
  ServerShares shares{0, 256u << 20};
  std::unique_ptr<Transfer> transfer;
  LanePort* port = nullptr;
  StageTotals stages;
  StageClock clock{&stages, Stage::kIdle};
  LaneCompressor compressor{1};
  std::unique_ptr<LaneLink> link;
  std::unique_ptr<LaneSink> sink;
  std::map<uint32_t, uint64_t> booked;  // chunks by part
  ChunkEnd end;
  bool kept = GENERATE(false, true);  // by a cache, not by the window

  explicit Source(Target* target) {
    OpenRequest request;
    request.lanes = 1;
    transfer = std::make_unique<Transfer>(database, serve, request, Hello(),
                                          "test", &shares);
    REQUIRE_OK(transfer->Attach(0, &port));
    REQUIRE(port->Enter(target->here.get()) == LanePort::Role::kServe);
    link = std::make_unique<LaneLink>(transfer.get(), port,
                                      target->here.get());
    sink = std::make_unique<LaneSink>(
        transfer.get(), link.get(), &clock, &compressor,
        [this](const PartEnd& one, const Totals& retained) {
          booked[one.part_id] = retained.chunks + one.totals.chunks;
        });
    sink->BeginRange(PartRequest(), /*rebuilt=*/true);
  }

  std::future<Status> Send(const std::string& file) {
    return std::async(std::launch::async, [this, file] {
      Status status = sink->Begin(ChunkBegin());
      if (kept && status.ok()) {
        sink->ReadAgainFrom(std::make_shared<KeptString>(file));
      }
      for (size_t at = 0; at < file.size() && status.ok(); at += 100'000) {
        status = sink->Append(file.substr(at, 100'000));
      }
      end.file_bytes = file.size();
      end.largest = "last";
      return status.ok() ? sink->End(end) : status;
    });
  }
};

// The lane has another connection, while its thread parks.
std::future<LanePort::Role> Reconnect(Source* source, Target* target) {
  target->channel->Close();
  static thread_local std::vector<std::unique_ptr<Channel>> gone;
  gone.push_back(std::move(target->here));  // the source may still use it
  target->Connect();
  return std::async(std::launch::async, [source, target] {
    return source->port->Enter(target->here.get());
  });
}

void RequireChunk(Target* target, const std::string& file,
                  std::future<Status>* sent) {
  ChunkEnd end;
  REQUIRE_OK(target->channel->ExpectType(target->last, FrameType::kChunkEnd));
  REQUIRE_OK(end.DecodeFrom(target->last.payload));
  REQUIRE_OK(sent->get());
  REQUIRE(target->bytes == file);
  REQUIRE(end.digest == target->digest.Finish());
  REQUIRE(end.file_bytes == file.size());
}

TEST_CASE("LaneSink goes on at the byte that the target has come to",
          "[source][lane]") {
  const std::string file = RandomBytes(3'000'000, 1);
  Target target;
  target.Connect();
  Source source(&target);
  std::future<Status> sent = source.Send(file);
  REQUIRE(target.ReceiveBegin().first_byte == 0);
  std::future<LanePort::Role> waiting[3];
  for (int cut = 0; cut < 3; ++cut) {
    target.ReceiveData(target.bytes.size() + 700'000);
    const uint64_t retained = target.bytes.size();
    waiting[cut] = Reconnect(&source, &target);
    target.AskForRest();
    REQUIRE(target.ReceiveBegin().first_byte == retained);
  }
  target.ReceiveData(UINT64_MAX);
  RequireChunk(&target, file, &sent);
  source.port->Leave();
}

TEST_CASE("LaneSink sends a chunk from its begin while the window holds it",
          "[source][lane]") {
  const std::string file = RandomBytes(3'000'000, 2);
  Target target;
  target.Connect();
  Source source(&target);
  std::future<Status> sent = source.Send(file);
  target.ReceiveBegin();
  target.ReceiveData(1'000'000, /*acknowledge=*/false);
  target.bytes.clear();
  target.digest = ChunkDigest();
  target.frames = 0;
  const auto waiting = Reconnect(&source, &target);
  target.AskForRest();
  REQUIRE(target.ReceiveBegin().first_byte == 0);
  target.ReceiveData(UINT64_MAX);
  RequireChunk(&target, file, &sent);
  source.port->Leave();
}

TEST_CASE("LaneSink gives a chunk up when its target asks for something else",
          "[source][lane]") {
  const std::string file = RandomBytes(3'000'000, 3);
  Target target;
  target.Connect();
  Source source(&target);
  source.kept = false;  // else it has all that was sent
  std::future<Status> sent = source.Send(file);
  target.ReceiveBegin();
  target.ReceiveData(1'000'000);
  const auto waiting = Reconnect(&source, &target);
  PartRequest request;
  SECTION("another part") { request.part_id = 7; }
  SECTION("what it acknowledged before") {}
  SECTION("a place between two frames") {
    request.open_bytes = target.bytes.size() - 1;
    request.open_frames = target.frames;
  }
  SECTION("another chunk") {
    request.received.chunks = 4;
    request.after = "x";
  }
  target.Ask(request);
  REQUIRE(EndStateOf(sent.get()) == EndState::kCancelled);
  REQUIRE(source.sink->TakeSuperseded());
  LaneRequest next;
  REQUIRE_OK(source.link->Receive(&next));
  PartRequest asked;
  REQUIRE(next.type == FrameType::kPartRequest);
  REQUIRE_OK(asked.DecodeFrom(next.payload));
  REQUIRE(asked == request);
  source.port->Leave();
}

// Two parts of two chunks each, sent one behind the other: part 0 ends, part
// 1 as well.
constexpr uint64_t kSmallChunk = 300'000;

std::string ChunkBytes(uint32_t part, uint32_t ordinal) {
  std::string bytes;
  for (int piece = 0; piece < 3; ++piece) {
    bytes += RandomBytes(kSmallChunk / 3, 100 * part + 10 * ordinal + piece);
  }
  return bytes;
}

std::future<Status> SendTwoParts(Source* source) {
  return std::async(std::launch::async, [source] {
    Status status;
    for (uint32_t part = 0; part < 2 && status.ok(); ++part) {
      PartRequest request;
      request.part_id = part;
      if (part == 1) {
        source->sink->BeginRange(request, /*rebuilt=*/true);
      }
      for (uint32_t ordinal = 0; ordinal < 2 && status.ok(); ++ordinal) {
        ChunkBegin begin;
        begin.part_id = part;
        begin.ordinal = ordinal;
        status = source->sink->Begin(begin);
        if (source->kept && status.ok()) {
          source->sink->ReadAgainFrom(
              std::make_shared<KeptString>(ChunkBytes(part, ordinal)));
        }
        for (int piece = 0; piece < 3 && status.ok(); ++piece) {
          status = source->sink->Append(
              RandomBytes(kSmallChunk / 3, 100 * part + 10 * ordinal + piece));
        }
        ChunkEnd end;
        end.part_id = part;
        end.ordinal = ordinal;
        end.entries = 1;
        end.file_bytes = kSmallChunk;
        end.largest = "key" + std::to_string(ordinal);
        status = status.ok() ? source->sink->End(end) : status;
      }
      status = status.ok() ? source->sink->EndPart() : status;
    }
    return status;
  });
}

// The rest of a chunk, from the byte that the source says.
void ReceiveRest(Target* target, uint32_t part, uint32_t ordinal,
                 uint64_t first_byte) {
  const ChunkBegin begin = target->ReceiveBegin();
  REQUIRE(begin.part_id == part);
  REQUIRE(begin.ordinal == ordinal);
  REQUIRE(begin.first_byte == first_byte);
  std::string bytes;
  while (first_byte + bytes.size() < kSmallChunk) {
    REQUIRE_OK(target->channel->Receive(Soon(), &target->last));
    REQUIRE(target->last.type == FrameType::kChunkData);
    bytes += target->last.payload.ToString();
  }
  REQUIRE(bytes == ChunkBytes(part, ordinal).substr(first_byte));
  ChunkEnd end;
  REQUIRE_OK(
      target->channel->ReceiveMessage(FrameType::kChunkEnd, Soon(), &end));
  REQUIRE(end.ordinal == ordinal);
}

void ReceivePartEnd(Target* target, uint32_t part, uint64_t chunks) {
  PartEnd end;
  REQUIRE_OK(
      target->channel->ReceiveMessage(FrameType::kPartEnd, Soon(), &end));
  REQUIRE(end.part_id == part);
  REQUIRE(end.totals.chunks == chunks);
  REQUIRE(end.totals.sst_bytes == chunks * kSmallChunk);
}

TEST_CASE("LaneSink sends chunks and parts that it has ended again, from "
          "where the target stands",
          "[source][lane]") {
  Target target;
  target.transport = MakeMemoryTransport(4u << 20);  // all fits
  target.Connect();
  Source source(&target);
  std::future<Status> sent = SendTwoParts(&source);
  REQUIRE_OK(sent.get());
  PartRequest first;
  PartRequest second;
  second.part_id = 1;
  uint64_t chunks = 2;
  uint64_t begins_at = 0;
  SECTION("nothing has come") {}
  SECTION("a part of a chunk") {
    first.open_bytes = begins_at = kSmallChunk / 3;
    first.open_frames = 1;
  }
  SECTION("a chunk and a part of the next") {
    first.received.chunks = 1;
    first.after = "key0";
    first.open_bytes = begins_at = 2 * (kSmallChunk / 3);
    first.open_frames = 2;
    chunks = 1;
  }
  SECTION("all but the part's end") {
    first.received.chunks = 2;
    first.after = "key1";
    chunks = 0;
  }
  std::future<Status> resent =
      std::async(std::launch::async, [&] { return source.sink->GoOn(); });
  const auto waiting = Reconnect(&source, &target);
  target.Ask(first);
  target.Ask(second);
  for (auto ordinal = static_cast<uint32_t>(2 - chunks); ordinal < 2;
       ++ordinal) {
    ReceiveRest(&target, 0, ordinal, begins_at);
    begins_at = 0;
  }
  ReceivePartEnd(&target, 0, chunks);
  ReceiveRest(&target, 1, 0, 0);
  ReceiveRest(&target, 1, 1, 0);
  ReceivePartEnd(&target, 1, 2);
  REQUIRE_OK(resent.get());
  REQUIRE(source.booked == std::map<uint32_t, uint64_t>{{0, 2}, {1, 2}});
  source.port->Leave();
}

TEST_CASE("LaneSink lets a target go on behind all that was sent",
          "[source][lane]") {
  Target target;
  target.transport = MakeMemoryTransport(4u << 20);
  target.Connect();
  Source source(&target);
  REQUIRE_OK(SendTwoParts(&source).get());
  std::future<Status> resent =
      std::async(std::launch::async, [&] { return source.sink->GoOn(); });
  const auto waiting = Reconnect(&source, &target);
  PartRequest request;
  request.part_id = 2;
  target.Ask(request);
  REQUIRE_OK(resent.get());
  REQUIRE(source.sink->empty());
  LaneRequest next;
  REQUIRE_OK(source.link->Receive(&next));
  PartRequest asked;
  REQUIRE_OK(asked.DecodeFrom(next.payload));
  REQUIRE(asked == request);
  source.port->Leave();
}

// As of a target that was started again with more lanes: the second part went
// to another of them.
TEST_CASE("LaneSink answers a first request while no second one comes",
          "[source][lane]") {
  Target target;
  target.transport = MakeMemoryTransport(4u << 20);
  target.Connect();
  Source source(&target);
  REQUIRE_OK(SendTwoParts(&source).get());
  std::future<Status> resent =
      std::async(std::launch::async, [&] { return source.sink->GoOn(); });
  const auto waiting = Reconnect(&source, &target);
  target.Ask(PartRequest());
  ReceiveRest(&target, 0, 0, 0);
  ReceiveRest(&target, 0, 1, 0);
  ReceivePartEnd(&target, 0, 2);
  SECTION("then sends the part behind it, asked for late") {
    PartRequest second;
    second.part_id = 1;
    target.Ask(second);
    ReceiveRest(&target, 1, 0, 0);
    ReceiveRest(&target, 1, 1, 0);
    ReceivePartEnd(&target, 1, 2);
    REQUIRE_OK(resent.get());
  }
  SECTION("then gives the part behind up for another request") {
    PartRequest other;
    other.part_id = 7;
    target.Ask(other);
    REQUIRE_OK(resent.get());
    LaneRequest next;
    REQUIRE_OK(source.link->Receive(&next));
    PartRequest asked;
    REQUIRE_OK(asked.DecodeFrom(next.payload));
    REQUIRE(asked == other);
  }
  SECTION("then ends with the transfer") {
    source.transfer->End();
    REQUIRE(resent.wait_for(std::chrono::seconds(5)) ==
            std::future_status::ready);
    REQUIRE_FALSE(resent.get().ok());
  }
  source.port->Leave();
}

TEST_CASE("LaneSink that is parked ends with the transfer", "[source][lane]") {
  const std::string file = RandomBytes(3'000'000, 4);
  Target target;
  target.Connect();
  Source source(&target);
  std::future<Status> sent = source.Send(file);
  target.ReceiveBegin();
  target.ReceiveData(1'000'000);
  target.channel->Close();
  source.transfer->End();
  REQUIRE(sent.wait_for(std::chrono::seconds(5)) == std::future_status::ready);
  REQUIRE_FALSE(sent.get().ok());
}

TEST_CASE("LaneSink waits for acknowledgements once 8 MiB lack them",
          "[source][lane]") {
  const std::string file = RandomBytes(12'000'000, 5);
  Target target;
  target.Connect();
  Source source(&target);
  source.kept = false;
  std::future<Status> sent = source.Send(file);
  target.ReceiveBegin();
  // All that the window and no acknowledgement allow comes, and no more.
  const uint64_t most = LaneWindow::kBytes / 100'000 * 100'000;
  target.ReceiveData(most, /*acknowledge=*/false);
  Frame frame;
  REQUIRE(target.channel
              ->Receive(WaitLimit::Within(std::chrono::milliseconds(200)),
                        &frame)
              .IsTimedOut());
  ChunkAck ack;
  SECTION("and goes on") {
    ack.bytes = target.bytes.size();
    REQUIRE_OK(target.channel->SendMessage(FrameType::kChunkAck, ack, Soon()));
    target.ReceiveData(UINT64_MAX);
    RequireChunk(&target, file, &sent);
  }
  SECTION("and fails when more is acknowledged than was sent") {
    ack.bytes = target.bytes.size() + 1;
    REQUIRE_OK(target.channel->SendMessage(FrameType::kChunkAck, ack, Soon()));
    REQUIRE(EndStateOf(sent.get()) == EndState::kCorrupt);
    REQUIRE_FALSE(source.link->lost());
  }
  source.port->Leave();
}

}  // namespace
}  // namespace sstferry
