// Tests wrong compressed frames of a hostile source, and peers that compress
// without agreement.
#include <filesystem>
#include <random>

#include "format/digest.h"
#include "format/limits.h"
#include "format/wire_compression.h"
#include "pipeline/pull/source_session.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/relay.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::hostile_compression_test {
namespace {

using rocksdb::Slice;
using rocksdb::Status;
using std::chrono::milliseconds;

PullOptions PullFromPeer(const HostPort& where, const ScratchDir& dir) {
  PullOptions options = PullFrom(where, dir / "target");
  options.compression = WireCompression::kZstd;
  options.timeouts.connect = milliseconds(60'000);
  // The target waits this long for the bytes that a wrong length announces.
  options.timeouts.peer = milliseconds(20'000);
  return options;
}

// Returns a source that compresses the honest chunk's bytes, then changes the
// payload.
SourceLies Compressing(std::function<void(std::string*)> change = nullptr) {
  SourceLies lies;
  lies.chunk_payload = [change](std::string* payload, uint16_t* flags) {
    WireCompressor compressor(1);
    Slice compressed;
    if (!compressor.Compress(*payload, kMaxPayloadBytes, &compressed)) {
      abort();
    }
    *payload = compressed.ToString();
    *flags = kFrameFlagZstd;
    if (change) {
      change(payload);
    }
  };
  return lies;
}

void RequireFound(const SourceLies& lies, const std::string& sentence,
                  WireCompression compression = WireCompression::kZstd) {
  const ScratchDir dir;
  const std::unique_ptr<FakeSource> source = LyingSource(lies);
  PullOptions options = PullFromPeer(source->address(), dir);
  options.compression = compression;
  const Summary summary = RunPull(options);
  INFO("expected \"" << sentence << "\", found " << summary.status.ToString());
  REQUIRE(EndStateOf(summary.status) == EndState::kCorrupt);
  REQUIRE(summary.status.ToString().find(sentence) != std::string::npos);
  REQUIRE_FALSE(std::filesystem::exists(dir / "target"));
}

TEST_CASE("A pull accepts compressed frames of an honest fake source",
          "[bad_input][compression]") {
  for (const WireCompression compression :
       {WireCompression::kZstd, WireCompression::kAuto}) {
    const ScratchDir dir;
    const std::unique_ptr<FakeSource> source = LyingSource(Compressing());
    PullOptions options = PullFromPeer(source->address(), dir);
    options.compression = compression;
    const Summary summary = RunPull(options);
    REQUIRE_OK(summary.status);
    REQUIRE(summary.compressed_frames == 1);
    REQUIRE(EntriesOf(dir / "target").size() == 800);
  }
}

TEST_CASE("A pull refuses wrong compressed frames",
          "[bad_input][compression][corruption]") {
  SECTION("compression was not agreed on") {
    RequireFound(Compressing(), "not agreed on", WireCompression::kNone);
  }
  SECTION("frames that are not compressed") {
    SourceLies lies;
    lies.chunk_payload = [](std::string*, uint16_t* flags) {
      *flags = kFrameFlagZstd;
    };
    RequireFound(lies, "compressed chunk data: ");
  }
  SECTION("frames with another flag") {
    SourceLies lies;
    lies.chunk_payload = [](std::string*, uint16_t* flags) {
      *flags = 1u << 9;
    };
    RequireFound(lies, "expected bits 9-15 to be 0");
  }
  SECTION("empty") {
    RequireFound(Compressing([](std::string* p) { p->clear(); }),
                 "expected at least 16 bytes, found 0");
  }
  SECTION("truncated") {
    RequireFound(
        Compressing([](std::string* p) { p->resize(p->size() / 2); }),
        "is damaged or truncated");
  }
  SECTION("a digest of other bytes") {
    RequireFound(Compressing([](std::string* p) { (*p)[4] ^= 1; }),
                 "digest of the decompressed bytes");
  }
  SECTION("with another size") {
    RequireFound(Compressing([](std::string* p) { (*p)[0] ^= 1; }),
                 "content size");
  }
  SECTION("two zstd frames in one") {
    RequireFound(Compressing([](std::string* p) { *p += p->substr(12); }),
                 "the only zstd frame");
  }
  SECTION("a chunk that is shorter") {
    SourceLies lies;
    lies.chunk_payload = [](std::string* payload, uint16_t* flags) {
      payload->resize(payload->size() / 2);
      Compressing().chunk_payload(payload, flags);
    };
    RequireFound(lies, "chunk bytes");
  }
}

TEST_CASE("Random damage inside compressed frames is always found",
          "[bad_input][compression][corruption]") {
  // The damage is made before the frame's digest, as by bad memory in the
  // source.
  std::mt19937_64 random(5);
  for (int i = 0; i < 40; ++i) {
    const uint64_t where = random();
    const uint8_t flip = static_cast<uint8_t>(1 + random() % 255);
    const ScratchDir dir;
    const std::unique_ptr<FakeSource> source =
        LyingSource(Compressing([where, flip](std::string* payload) {
          (*payload)[where % payload->size()] ^= static_cast<char>(flip);
        }));
    const Summary summary = RunPull(PullFromPeer(source->address(), dir));
    INFO(where << " ^ " << int{flip} << ": " << summary.status.ToString());
    REQUIRE((EndStateOf(summary.status) == EndState::kCorrupt ||
             EntriesOf(dir / "target").size() == 800));
    REQUIRE(summary.status.ok() ==
            std::filesystem::exists(dir / "target"));
  }
}

// A served database whose chunks are compressible, through a relay.
struct Relayed {
  Relayed() {
    SampleShape shape;
    shape.entries = 3000;
    shape.value_bytes = 40;
    MakeSampleDatabase(dir / "source", shape);
    server = std::make_unique<TestServer>(ServeSample(dir / "source"));
    relay = std::make_unique<Relay>(server->address());
  }
  ScratchDir dir;
  std::unique_ptr<TestServer> server;
  std::unique_ptr<Relay> relay;
};

TEST_CASE("A bit that flips on the way in a compressed transfer is found",
          "[bad_input][compression][corruption]") {
  uint64_t whole = 0;
  {
    Relayed net;
    PullOptions options = PullFromPeer(net.relay->address(), net.dir);
    const Summary summary = RunPull(options);
    REQUIRE_OK(summary.status);
    REQUIRE(summary.compressed_frames > 0);
    whole = net.relay->bytes(Relay::kToClient);
  }
  std::mt19937_64 random(6);
  for (int i = 0; i < 10; ++i) {
    Relayed net;
    // The bytes before the end of the stream are the same in each run. The end
    // has the last Stats and Pongs, whose number differs.
    const uint64_t at = random() % (whole * 9 / 10);
    net.relay->FlipAt(Relay::kToClient, at,
                      static_cast<uint8_t>(1u << (random() % 8)));
    const Summary summary =
        RunPull(PullFromPeer(net.relay->address(), net.dir));
    INFO("offset " << at << " of " << whole << ": "
                   << summary.status.ToString());
    REQUIRE_FALSE(summary.status.ok());
    REQUIRE_FALSE(std::filesystem::exists(net.dir / "target"));
  }
}

TEST_CASE("A source refuses compression that was not agreed on",
          "[bad_input][compression]") {
  const ScratchDir dir;
  SampleShape shape;
  shape.entries = 500;
  MakeSampleDatabase(dir / "source", shape);
  const TestServer server(ServeSample(dir / "source"));
  std::unique_ptr<Channel> control;
  Opened opened;
  const auto refused = [](Channel* channel, const std::string& sentence) {
    const Status end = ReceiveEnd(channel);
    INFO(end.ToString());
    REQUIRE(EndStateOf(end) == EndState::kCorrupt);
    REQUIRE(end.ToString().find(sentence) != std::string::npos);
  };
  SECTION("before anything is open") {
    REQUIRE_OK(DialControl(server.address(), &control));
    REQUIRE_OK(control->SendMessage(FrameType::kCompress, Compress{true}));
    refused(control.get(), "unexpected frame Compress");
  }
  SECTION("a request without compression") {
    REQUIRE_OK(OpenSample(server.address(), &opened, &control));
    REQUIRE_OK(control->SendMessage(FrameType::kCompress, Compress{true}));
    refused(control.get(), "unexpected frame Compress");
  }
  SECTION("a compressed frame is sent to the source") {
    REQUIRE_OK(OpenSample(server.address(), &opened, &control));
    std::unique_ptr<Channel> lane;
    REQUIRE_OK(DialLane(server.address(), opened.transfer_id, 0, &lane));
    const Slice part("bytes");
    REQUIRE_OK(lane->SendParts(FrameType::kChunkData, &part, 1,
                               WaitLimit::Within(milliseconds(60'000)), nullptr,
                               kFrameFlagZstd));
    // The source treats the frame like damage on the way: it closes the
    // connection, but not the transfer.
    REQUIRE(EndStateOf(ReceiveEnd(lane.get())) == EndState::kDeadPeer);
    REQUIRE_OK(DialLane(server.address(), opened.transfer_id, 0, &lane));
    Finish finish;
    REQUIRE_OK(TakeParts(lane.get(), 1, &finish));
  }
}

// Connects with a Hello that has `features`, and opens "db" with a request for
// compression.
Status OpenCompressed(const HostPort& where, uint64_t features,
                      Opened* opened, std::unique_ptr<Channel>* control) {
  const WaitLimit limit = WaitLimit::Within(milliseconds(60'000));
  std::unique_ptr<Connection> connection;
  Status status = MakeTcpDialer(where)->Dial(limit, &connection);
  if (!status.ok()) {
    return status;
  }
  *control = std::make_unique<Channel>(std::move(connection));
  Hello hello = MakeHello();
  hello.features = features;
  HelloAck ack;
  status = ClientHandshake(control->get(), hello, limit, &ack);
  OpenRequest request;
  request.database = "db";
  request.lanes = 1;
  request.chunk_bytes = 1u << 20;
  request.compression = WireCompression::kZstd;
  if (status.ok()) {
    status = (*control)->SendMessage(FrameType::kOpenRequest, request);
  }
  // A busy server also sends its progress.
  Frame frame;
  while (status.ok() && frame.type != FrameType::kPlanEnd) {
    status = (*control)->Receive(limit, &frame);
    if (status.ok() && frame.type == FrameType::kOpened) {
      status = Decode(frame.payload, opened);
    }
  }
  return status;
}

TEST_CASE("A target that cannot decompress is never sent compressed frames",
          "[bad_input][compression]") {
  // If not `able`, the target requests compression, but its Hello does not have
  // the feature.
  const ScratchDir dir;
  SampleShape shape;
  shape.entries = 2000;
  shape.value_bytes = 40;
  MakeSampleDatabase(dir / "source", shape);
  const TestServer server(ServeSample(dir / "source"));
  const bool able = GENERATE(true, false);
  Opened opened;
  std::unique_ptr<Channel> control;
  REQUIRE_OK(OpenCompressed(server.address(),
                            able ? kSupportedFeatures
                                 : kSupportedFeatures &
                                       ~kFeatureWireCompression,
                            &opened, &control));
  std::unique_ptr<Channel> lane;
  REQUIRE_OK(DialLane(server.address(), opened.transfer_id, 0, &lane));
  lane->AllowFlags(kFrameFlagZstd);
  REQUIRE_OK(lane->SendMessage(FrameType::kPartRequest, PartRequest()));
  uint64_t compressed = 0;
  Frame frame;
  do {
    REQUIRE_OK(lane->Receive(WaitLimit::Within(milliseconds(60'000)), &frame));
    compressed += frame.flags == kFrameFlagZstd ? 1 : 0;
  } while (frame.type != FrameType::kPartEnd);
  REQUIRE((compressed > 0) == able);
}

}  // namespace
}  // namespace sstferry::hostile_compression_test
