#include "pipeline/pull/stall_guard.h"

#include "format/frame.h"
#include "tests/support/catch.h"

namespace sstferry::stall_guard_test {
namespace {

using std::chrono::milliseconds;

const WaitLimit Soon() { return WaitLimit::Within(milliseconds(60'000)); }

// Both ends of one connection: a channel, and a peer that writes raw bytes.
struct Ends {
  Ends() {
    MemoryTransport transport = MakeMemoryTransport();
    std::unique_ptr<Connection> dialed;
    REQUIRE_OK(transport.dialer->Dial(Soon(), &dialed));
    REQUIRE_OK(transport.listener->Accept(&peer));
    channel = std::make_unique<Channel>(std::move(dialed));
  }
  void Write(const std::string& bytes) {
    const rocksdb::Slice part(bytes);
    REQUIRE_OK(peer->Write(&part, 1, Soon()));
  }
  std::unique_ptr<Connection> peer;
  std::unique_ptr<Channel> channel;
};

std::string PingFrame() {
  std::string payload;
  Encode(Ping(), &payload);
  const rocksdb::Slice part(payload);
  std::string frame(kFrameHeaderBytes, 0);
  EncodeFrameHeader(FrameType::kPing, 0, &part, 1, frame.data(), nullptr);
  return frame + payload;
}

TEST_CASE("StallGuard continues to wait only while there is progress",
          "[target][stall]") {
  Ends ends;
  int asked = 0;
  const StallGuard guard(milliseconds(20), [&asked] {
    return static_cast<uint64_t>(std::min(++asked, 4));
  });
  Frame frame;
  const rocksdb::Status status = guard.Receive(ends.channel.get(), &frame);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kTooSlow);
  REQUIRE(asked == 5);
  // A timeout between two frames loses nothing.
  ends.Write(PingFrame());
  REQUIRE_OK(guard.Receive(ends.channel.get(), &frame));
  REQUIRE(frame.type == FrameType::kPing);
}

TEST_CASE("StallGuard gives up inside a frame, even with progress elsewhere",
          "[target][stall]") {
  Ends ends;
  uint64_t progress = 0;
  const StallGuard guard(milliseconds(20), [&progress] { return ++progress; });
  const std::string whole = PingFrame();
  ends.Write(whole.substr(0, whole.size() - 1));
  Frame frame;
  const rocksdb::Status status = guard.Receive(ends.channel.get(), &frame);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kTooSlow);
}

TEST_CASE("StallGuard waits less for the rest of a frame than for the next",
          "[target][stall]") {
  Ends ends;
  const StallGuard guard(
      std::chrono::hours(1), [] { return uint64_t{0}; }, milliseconds(20));
  const std::string whole = PingFrame();
  ends.Write(whole.substr(0, whole.size() - 1));
  Frame frame;
  const rocksdb::Status status = guard.Receive(ends.channel.get(), &frame);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kTooSlow);
  REQUIRE_FALSE(ends.channel->can_receive());
}

}  // namespace
}  // namespace sstferry::stall_guard_test
