// Frames over a connection between two correct peers.
#include <thread>
#include <vector>

#include "format/end_state.h"
#include "format/limits.h"
#include "pipeline/wire/channel.h"
#include "tests/pipeline/wire/transports.h"

namespace sstferry::channel_test {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

struct Channels {
  explicit Channels(Transport transport) {
    Ends ends = transport.Connect();
    client = std::make_unique<Channel>(std::move(ends.client));
    server = std::make_unique<Channel>(std::move(ends.server));
  }
  std::unique_ptr<Channel> client;
  std::unique_ptr<Channel> server;
};

TEST_CASE("Channel carries every frame type and size", "[wire][net]") {
  const TransportKind kind = GENERATE(from_range(kTransportKinds));
  INFO(kind.name);
  Channels channels(kind.make());
  std::vector<FrameType> types;
  for (int value = 0; value < 256; ++value) {
    if (IsKnownFrameType(static_cast<uint8_t>(value))) {
      types.push_back(static_cast<FrameType>(value));
    }
  }
  REQUIRE(types.size() >= 25);
  const std::vector<size_t> sizes = {0,      1,     31,    32,
                                     33,     16353, 16384, 100'000,
                                     1 << 19, kMaxPayloadBytes};
  auto sender = InBackground([&] {
    uint32_t seed = 0;
    for (const FrameType type : types) {
      for (const size_t size : sizes) {
        const Status status =
            channels.client->Send(type, Pattern(size, seed++), Soon());
        if (!status.ok()) {
          return status;
        }
      }
    }
    return Status::OK();
  });
  uint32_t seed = 0;
  for (const FrameType type : types) {
    for (const size_t size : sizes) {
      Frame frame;
      REQUIRE_OK(channels.server->Receive(Soon(), &frame));
      REQUIRE(frame.type == type);
      REQUIRE((frame.payload.ToStringView() == Pattern(size, seed++)));
    }
  }
  REQUIRE_OK(sender.get());
  REQUIRE(channels.client->bytes_sent() == channels.server->bytes_received());
}

TEST_CASE("Channel receives payloads of any size into the caller's memory",
          "[wire][net]") {
  const TransportKind kind = GENERATE(from_range(kTransportKinds));
  INFO(kind.name);
  Channels channels(kind.make());
  const std::vector<size_t> sizes = {0,      1,    31,      32,
                                     33,     4096, 100'000, kMaxPayloadBytes,
                                     0,      5};
  auto sender = InBackground([&] {
    uint32_t seed = 0;
    for (int round = 0; round < 3; ++round) {
      for (const size_t size : sizes) {
        const Status status = channels.client->Send(
            FrameType::kChunkData, Pattern(size, seed++), Soon());
        if (!status.ok()) {
          return status;
        }
      }
    }
    return Status::OK();
  });
  std::string memory(kMaxPayloadBytes, '\0');
  uint32_t seed = 0;
  for (int round = 0; round < 3; ++round) {
    for (const size_t size : sizes) {
      FrameHeader header;
      // A second call returns the header of the same frame.
      REQUIRE_OK(channels.server->ReceiveHeader(Soon(), &header));
      REQUIRE_OK(channels.server->ReceiveHeader(Soon(), &header));
      REQUIRE(header.type == FrameType::kChunkData);
      REQUIRE(header.payload_bytes == size);
      // Alternate between both ways to receive. Each must find the bytes that
      // the other has read ahead.
      const bool elsewhere = (seed / 2 + seed) % 2 == 0;
      Frame frame;
      REQUIRE_OK(channels.server->ReceivePayload(
          Soon(), elsewhere ? memory.data() : nullptr, &frame));
      REQUIRE((frame.payload.ToStringView() == Pattern(size, seed++)));
      REQUIRE((frame.payload.data() == memory.data()) == elsewhere);
    }
  }
  REQUIRE_OK(sender.get());
}

TEST_CASE("Channel sends parts as one frame and returns its digest",
          "[wire][net]") {
  Channels channels(MemoryOne());
  const Slice parts[] = {"ab", "", "cde", "", "", "f", "", "ghi"};
  uint64_t digest = 0;
  REQUIRE_OK(channels.client->SendParts(FrameType::kChunkData, parts, 8,
                                        Soon(), &digest));
  Frame frame;
  REQUIRE_OK(channels.server->Receive(Soon(), &frame));
  REQUIRE(frame.payload.ToString() == "abcdefghi");
  REQUIRE(frame.digest == digest);
}

TEST_CASE("Channel accepts only the flags that were agreed on",
          "[wire][corruption]") {
  const bool allowed = GENERATE(true, false);
  Channels channels(MemoryOne());
  if (allowed) {
    channels.server->AllowFlags(kFrameFlagZstd);
  }
  const Slice part("compressed");
  const uint16_t ignorable = 4;
  uint64_t digest = 0;
  REQUIRE_OK(channels.client->SendParts(FrameType::kChunkData, &part, 1,
                                        Soon(), &digest, ignorable));
  REQUIRE_OK(channels.client->SendParts(FrameType::kChunkData, &part, 1,
                                        Soon(), &digest, kFrameFlagZstd));
  Frame frame;
  REQUIRE_OK(channels.server->Receive(Soon(), &frame));
  REQUIRE(frame.flags == ignorable);
  const Status status = channels.server->Receive(Soon(), &frame);
  INFO(status.ToString());
  if (allowed) {
    REQUIRE_OK(status);
    REQUIRE(frame.flags == kFrameFlagZstd);
    REQUIRE(frame.digest == digest);
  } else {
    REQUIRE(status.IsCorruption());
    REQUIRE(MessageOf(status).find("not agreed on") != std::string::npos);
  }
}

TEST_CASE("Channel refuses to send frames that no receiver accepts", "[wire]") {
  Channels channels(MemoryOne());
  const std::string big(kMaxPayloadBytes + 1, 'x');
  REQUIRE_FALSE(channels.client->Send(FrameType::kChunkData, big).ok());
  const std::vector<Slice> parts(9, Slice("x"));
  REQUIRE_FALSE(channels.client
                    ->SendParts(FrameType::kChunkData, parts.data(), 9,
                                Soon(), nullptr)
                    .ok());
  // The refused frames did not damage the channel.
  REQUIRE_OK(channels.client->Send(FrameType::kPing, "p"));
  Frame frame;
  REQUIRE_OK(channels.server->Receive(Soon(), &frame));
  REQUIRE(frame.type == FrameType::kPing);
}

TEST_CASE("Channel keeps frames of several senders whole", "[wire][net]") {
  const TransportKind kind = GENERATE(from_range(kTransportKinds));
  INFO(kind.name);
  Channels channels(kind.make());
  constexpr int kSenders = 4;
  constexpr int kFrames = 100;
  std::vector<std::future<bool>> senders;
  for (int s = 0; s < kSenders; ++s) {
    senders.push_back(InBackground([&channels, s] {
      for (int i = 0; i < kFrames; ++i) {
        const std::string payload(1000 + 500 * i, static_cast<char>('a' + s));
        if (!channels.client->Send(FrameType::kChunkData, payload, Soon())
                 .ok()) {
          return false;
        }
      }
      return true;
    }));
  }
  int next[kSenders] = {};
  for (int i = 0; i < kSenders * kFrames; ++i) {
    Frame frame;
    REQUIRE_OK(channels.server->Receive(Soon(), &frame));
    const char letter = frame.payload[0];
    int& index = next[letter - 'a'];
    REQUIRE((frame.payload == std::string(1000 + 500 * index, letter)));
    ++index;
  }
  for (auto& sender : senders) {
    REQUIRE(sender.get());
  }
}

TEST_CASE("Channel can receive again after a timeout between frames",
          "[wire]") {
  Channels channels(MemoryOne());
  Frame frame;
  const WaitLimit brief = WaitLimit::Within(std::chrono::milliseconds(20));
  FrameHeader header;
  REQUIRE(channels.server->Receive(brief, &frame).IsTimedOut());
  REQUIRE(channels.server->ReceiveHeader(brief, &header).IsTimedOut());
  REQUIRE_OK(channels.client->Send(FrameType::kPing, "late"));
  REQUIRE_OK(channels.server->Receive(Soon(), &frame));
  REQUIRE(frame.payload == Slice("late"));
}

TEST_CASE("Channel delivers a message and checks its type", "[wire]") {
  Channels channels(MemoryOne());
  Ping ping;
  ping.token = 77;
  REQUIRE_OK(channels.client->SendMessage(FrameType::kPing, ping));
  REQUIRE_OK(channels.client->SendMessage(FrameType::kPing, ping));
  Ping received;
  REQUIRE_OK(
      channels.server->ReceiveMessage(FrameType::kPing, Soon(), &received));
  REQUIRE(received.token == 77);
  const Status status =
      channels.server->ReceiveMessage(FrameType::kPong, Soon(), &received);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kCorrupt);
  REQUIRE(status.ToString().find("expected a Pong frame, found Ping") !=
          std::string::npos);
}

TEST_CASE("Channel names peer and frame of an undecodable message",
          "[wire][corruption]") {
  Channels channels(MemoryOne());
  REQUIRE_OK(channels.client->Send(FrameType::kPing, "123"));
  Ping ping;
  const Status status =
      channels.server->ReceiveMessage(FrameType::kPing, Soon(), &ping);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kCorrupt);
  REQUIRE(status.ToString().find("peer in-process, Ping frame") !=
          std::string::npos);
}

TEST_CASE("Channel turns an End frame into the peer's status", "[wire]") {
  for (int value = 1; value <= kMaxEndState; ++value) {
    Channels channels(MemoryOne());
    const auto state = static_cast<EndState>(value);
    SendEnd(channels.client.get(), MakeStatus(state, "the disk \x1b[31m"),
            "staging");
    Ping ping;
    const Status status =
        channels.server->ReceiveMessage(FrameType::kPing, Soon(), &ping);
    INFO(status.ToString());
    REQUIRE(EndStateOf(status) == state);
    // The text arrives, but without terminal commands.
    REQUIRE(MessageOf(status) ==
            "peer in-process: the disk ?[31m (staging)");
  }
}

TEST_CASE("Channel returns an End frame that was expected", "[wire]") {
  Channels channels(MemoryOne());
  SendEnd(channels.client.get(), Status::OK(), "");
  SendEnd(channels.client.get(), Status::OK(), "");
  End end;
  end.state = EndState::kBusy;
  REQUIRE_OK(channels.server->ReceiveMessage(FrameType::kEnd, Soon(), &end));
  REQUIRE(end.state == EndState::kOk);
  // An End frame with OK is an error if another message was expected.
  Ping ping;
  REQUIRE(EndStateOf(channels.server->ReceiveMessage(
              FrameType::kPing, Soon(), &ping)) == EndState::kCorrupt);
}

TEST_CASE("Channel says what it expected if the peer closes", "[wire]") {
  Channels channels(MemoryOne());
  channels.client.reset();
  Hello hello;
  const Status status =
      channels.server->ReceiveMessage(FrameType::kHello, Soon(), &hello);
  REQUIRE(status.IsIOError());
  REQUIRE(EndStateOf(status) == EndState::kDeadPeer);
  REQUIRE(MessageOf(status) ==
          "peer in-process: closed the connection, expected a Hello frame");
}

TEST_CASE("Channel wakes receiver, sender and waiting sender on Close",
          "[wire][net]") {
  const TransportKind kind = GENERATE(from_range(kTransportKinds));
  INFO(kind.name);
  Channels channels(kind.make());
  const std::string block(kMaxPayloadBytes, 'x');
  std::vector<std::future<Status>> calls;
  for (int i = 0; i < 3; ++i) {
    calls.push_back(InBackground([&] {
      Status status;
      while (status.ok()) {
        status = channels.client->Send(FrameType::kChunkData, block,
                                       WaitLimit::Forever());
      }
      return status;
    }));
  }
  auto receiver = InBackground([&] {
    Frame frame;
    return channels.client->Receive(WaitLimit::Forever(), &frame);
  });
  // Two frames have arrived, so the senders are running.
  Frame frame;
  REQUIRE_OK(channels.server->Receive(Soon(), &frame));
  REQUIRE_OK(channels.server->Receive(Soon(), &frame));
  channels.client->Close();
  REQUIRE(receiver.get().IsAborted());
  for (auto& call : calls) {
    // One sender was writing. The others follow after its frame was truncated.
    REQUIRE_FALSE(call.get().ok());
  }
}

TEST_CASE("Channel limits the wait for another sender", "[wire]") {
  Transport transport = MemoryOne();
  Ends ends = transport.Connect();
  Channel channel(std::move(ends.client));
  const std::string block(kMaxPayloadBytes, 'x');
  auto hog = InBackground([&] {
    return channel.Send(FrameType::kChunkData, block, WaitLimit::Forever());
  });
  // The first byte of a frame has arrived, and the rest does not fit.
  REQUIRE(ReadAll(ends.server.get(), 1).size() == 1);
  const WaitLimit brief = WaitLimit::Within(std::chrono::milliseconds(30));
  const Status status = channel.Send(FrameType::kPing, "p", brief);
  INFO(status.ToString());
  REQUIRE(status.IsTimedOut());
  channel.Close();
  REQUIRE(hog.get().IsAborted());
  REQUIRE(channel.Send(FrameType::kPing, "p", Soon()).IsIOError());
}

}  // namespace
}  // namespace sstferry::channel_test
