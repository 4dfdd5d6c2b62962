// Bytes that are not the next frame: each case must give an error with a
// reason.
#include <rapidcheck.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "format/end_state.h"
#include "format/limits.h"
#include "pipeline/wire/channel.h"
#include "tests/pipeline/wire/transports.h"

namespace sstferry::channel_corruption_test {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

// A connection that delivers a script in pieces of at most `piece` bytes, then
// ends regularly.
class ScriptedConnection final : public Connection {
 public:
  ScriptedConnection(std::string script, size_t piece)
      : script_(std::move(script)), piece_(piece) {}

  Status Read(char* buffer, size_t capacity, const WaitLimit& limit,
              size_t* bytes) override {
    *bytes = std::min({capacity, piece_, script_.size() - at_});
    memcpy(buffer, script_.data() + at_, *bytes);
    at_ += *bytes;
    return Status::OK();
  }
  Status Write(const Slice* parts, size_t part_count,
               const WaitLimit& limit) override {
    return Status::OK();
  }
  void Close() override {}
  const std::string& peer() const override { return peer_; }

 private:
  const std::string script_;
  const size_t piece_;
  size_t at_ = 0;
  const std::string peer_ = "script";
};

std::string EncodedFrame(FrameType type, uint64_t sequence,
                         const std::string& payload) {
  std::string frame(kFrameHeaderBytes, '\0');
  const Slice part(payload);
  EncodeFrameHeader(type, sequence, &part, 1, frame.data(), nullptr);
  return frame + payload;
}

std::vector<std::string> SampleFrames() {
  return {EncodedFrame(FrameType::kHello, 0, "first"),
          EncodedFrame(FrameType::kChunkData, 1, Pattern(40, 7)),
          EncodedFrame(FrameType::kChunkData, 2, Pattern(40, 8)),
          EncodedFrame(FrameType::kPartEnd, 3, "")};
}

std::string Join(const std::vector<std::string>& frames) {
  std::string script;
  for (const std::string& frame : frames) {
    script += frame;
  }
  return script;
}

struct Reception {
  size_t good_frames = 0;
  std::string payloads;
  Status end;  // the reason of the end; never OK
};

// Receives the payload into memory of exactly its size.
Status ReceiveElsewhere(Channel* channel, std::vector<char>* memory,
                        Frame* frame) {
  FrameHeader header;
  const Status status = channel->ReceiveHeader(Soon(), &header);
  if (!status.ok()) {
    return status;
  }
  REQUIRE(header.payload_bytes <= kMaxPayloadBytes);
  std::vector<char>(header.payload_bytes + 1, '#').swap(*memory);
  const Status received =
      channel->ReceivePayload(Soon(), memory->data(), frame);
  REQUIRE(memory->back() == '#');
  if (received.ok()) {
    REQUIRE(frame->type == header.type);
    REQUIRE(frame->payload.data() == memory->data());
  }
  return received;
}

Reception ReceiveAllBy(bool elsewhere, const std::string& script,
                       size_t piece) {
  Channel channel(std::make_unique<ScriptedConnection>(script, piece));
  Reception reception;
  std::vector<char> memory;
  for (;;) {
    Frame frame;
    reception.end = elsewhere ? ReceiveElsewhere(&channel, &memory, &frame)
                              : channel.Receive(Soon(), &frame);
    if (!reception.end.ok()) {
      // After an error, the stream cannot be used again.
      REQUIRE_FALSE(channel.Receive(Soon(), &frame).ok());
      return reception;
    }
    ++reception.good_frames;
    reception.payloads += frame.payload.ToString();
  }
}

// Receives by both functions, which must give the same result.
Reception ReceiveAll(const std::string& script, size_t piece = 1 << 20) {
  const Reception reception = ReceiveAllBy(false, script, piece);
  const Reception elsewhere = ReceiveAllBy(true, script, piece);
  REQUIRE(elsewhere.good_frames == reception.good_frames);
  REQUIRE(elsewhere.payloads == reception.payloads);
  REQUIRE(elsewhere.end.ToString() == reception.end.ToString());
  return reception;
}

TEST_CASE("Channel accepts frames in pieces of any size", "[wire]") {
  for (size_t piece = 1; piece < 80; ++piece) {
    const Reception reception = ReceiveAll(Join(SampleFrames()), piece);
    INFO(piece << " " << reception.end.ToString());
    REQUIRE(reception.good_frames == 4);
    REQUIRE(reception.end.IsIOError());
  }
}

TEST_CASE("Channel detects a dropped, repeated or swapped frame",
          "[wire][corruption]") {
  for (size_t i = 0; i + 1 < SampleFrames().size(); ++i) {
    std::vector<std::string> dropped = SampleFrames();
    dropped.erase(dropped.begin() + static_cast<ptrdiff_t>(i));
    std::vector<std::string> repeated = SampleFrames();
    repeated.insert(repeated.begin() + static_cast<ptrdiff_t>(i), repeated[i]);
    std::vector<std::string> swapped = SampleFrames();
    std::swap(swapped[i], swapped[i + 1]);

    const Reception drop = ReceiveAll(Join(dropped));
    const Reception repeat = ReceiveAll(Join(repeated));
    const Reception swap = ReceiveAll(Join(swapped));
    INFO(i << ": " << drop.end.ToString() << " / " << repeat.end.ToString()
           << " / " << swap.end.ToString());
    REQUIRE(drop.end.IsCorruption());
    REQUIRE(drop.good_frames == i);
    REQUIRE(repeat.end.IsCorruption());
    REQUIRE(repeat.good_frames == i + 1);
    REQUIRE(swap.end.IsCorruption());
    REQUIRE(swap.good_frames == i);
  }
}

TEST_CASE("Channel detects truncation at every byte", "[wire][corruption]") {
  const std::vector<std::string> frames = SampleFrames();
  const std::string script = Join(frames);
  for (size_t length = 0; length < script.size(); ++length) {
    size_t whole = 0;
    for (size_t end = 0;
         whole < frames.size() && end + frames[whole].size() <= length;
         ++whole) {
      end += frames[whole].size();
    }
    const Reception reception = ReceiveAll(script.substr(0, length));
    INFO(length << ": " << reception.end.ToString());
    REQUIRE(reception.good_frames == whole);
    REQUIRE(EndStateOf(reception.end) == EndState::kDeadPeer);
    REQUIRE(reception.end.IsIOError());
  }
}

TEST_CASE("Channel detects every flipped bit", "[wire][corruption]") {
  const std::vector<std::string> frames = SampleFrames();
  const std::string script = Join(frames);
  for (size_t bit = 0; bit < script.size() * 8; ++bit) {
    std::string bad = script;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    const Reception reception = ReceiveAll(bad);
    INFO("byte " << bit / 8 << " bit " << bit % 8 << ": "
                 << reception.end.ToString());
    REQUIRE(reception.good_frames < frames.size());
    // A flipped length may run into the end of the stream, and a flipped
    // version may be a later one. Neither passes as a frame.
    const EndState state = EndStateOf(reception.end);
    REQUIRE((state == EndState::kCorrupt || state == EndState::kDeadPeer ||
             state == EndState::kIncompatible));
  }
}

TEST_CASE("Channel recognizes a peer with another protocol",
          "[wire][corruption]") {
  const Reception http = ReceiveAll("GET / HTTP/1.1\r\n");
  INFO(http.end.ToString());
  REQUIRE(http.good_frames == 0);
  REQUIRE(EndStateOf(http.end) == EndState::kCorrupt);
  const std::string text = MessageOf(http.end);
  REQUIRE(text.find("peer script") != std::string::npos);
  REQUIRE(text.find("expected 53465931, found 47455420") !=
          std::string::npos);
  REQUIRE(text.find("is sstferry at the other end?") != std::string::npos);
}

TEST_CASE("Channel recognizes another protocol by its first four bytes",
          "[wire][corruption][net]") {
  const TransportKind kind = GENERATE(from_range(kTransportKinds));
  INFO(kind.name);
  Transport transport = kind.make();
  Ends ends = transport.Connect();
  const Slice noise("SSH-");
  REQUIRE_OK(ends.client->Write(&noise, 1, Soon()));
  Channel channel(std::move(ends.server));
  Frame frame;
  // The peer keeps its connection open. The error must not wait for a limit.
  REQUIRE(channel.Receive(WaitLimit::Forever(), &frame).IsCorruption());
}

TEST_CASE("Channel refuses a huge length before it allocates memory",
          "[wire][corruption]") {
  for (const uint32_t length :
       {kMaxPayloadBytes + 1, 0x7fffffffu, 0xffffffffu}) {
    std::string frame = EncodedFrame(FrameType::kChunkData, 0, "x");
    for (int i = 0; i < 4; ++i) {
      frame[static_cast<size_t>(16 + i)] =
          static_cast<char>(length >> (8 * i));
    }
    const Reception reception = ReceiveAll(frame);
    INFO(reception.end.ToString());
    REQUIRE(reception.end.IsCorruption());
    REQUIRE(reception.end.ToString().find(std::to_string(length)) !=
            std::string::npos);
  }
}

TEST_CASE("Channel survives random bytes", "[wire][corruption]") {
  REQUIRE(rc::check("noise after a valid prefix", [](const std::string& noise) {
    const size_t keep = *rc::gen::inRange<size_t>(0, kFrameHeaderBytes + 8);
    const std::string good = Join(SampleFrames());
    const std::string script =
        good.substr(0, keep) + "\x01" + noise + "\x02";
    // The first frame is 37 bytes long.
    RC_ASSERT(ReceiveAll(script).good_frames == (keep >= 37 ? 1u : 0u));
  }));
}

TEST_CASE("Channel stops at its limit if a peer sends byte by byte",
          "[wire][net]") {
  const TransportKind kind = GENERATE(from_range(kTransportKinds));
  INFO(kind.name);
  Transport transport = kind.make();
  Ends ends = transport.Connect();
  Channel channel(std::move(ends.server));
  std::promise<void> over;
  auto drip = InBackground([&, done = over.get_future()] {
    const std::string frame =
        EncodedFrame(FrameType::kHello, 0, std::string(100'000, 'x'));
    for (const char& byte : frame) {
      const Slice one(&byte, 1);
      if (!ends.client->Write(&one, 1, Soon()).ok() ||
          done.wait_for(std::chrono::milliseconds(2)) ==
              std::future_status::ready) {
        return;
      }
    }
  });
  const auto start = Clock::now();
  const bool elsewhere = GENERATE(false, true);
  WaitLimit limit = WaitLimit::Within(std::chrono::milliseconds(150));
  Frame frame;
  std::string memory(100'000, '\0');
  const Status status =
      channel.ReceivePayload(limit, elsewhere ? memory.data() : nullptr,
                             &frame);
  const auto took = Clock::now() - start;
  over.set_value();
  drip.get();
  INFO(status.ToString());
  REQUIRE(status.IsTimedOut());
  REQUIRE(EndStateOf(status) == EndState::kDeadPeer);
  REQUIRE(took >= std::chrono::milliseconds(150));
  REQUIRE(took < std::chrono::seconds(60));  // the bytes take 200 s
}

}  // namespace
}  // namespace sstferry::channel_corruption_test
