// Tests the relay, and TCP connections over a bad network.
#include "tests/support/relay.h"

#include <atomic>

#include "format/end_state.h"
#include "pipeline/wire/channel.h"
#include "tests/pipeline/wire/transports.h"

namespace sstferry::relay_test {
namespace {

using rocksdb::Slice;
using rocksdb::Status;
using std::chrono::milliseconds;

// A client that is connected to a server through a relay.
struct Relayed {
  Relayed() : direct(TcpOne("127.0.0.1")) {
    HostPort target;
    REQUIRE_OK(ParseHostPort(direct.listener->address(), &target));
    relay = std::make_unique<Relay>(target);
    dialer = MakeTcpDialer(relay->address());
    Connect();
  }
  void Connect() {
    REQUIRE_OK(dialer->Dial(Soon(), &client));
    REQUIRE_OK(direct.listener->Accept(&server));
  }
  Transport direct;
  std::unique_ptr<Relay> relay;
  std::unique_ptr<Dialer> dialer;
  std::unique_ptr<Connection> client;
  std::unique_ptr<Connection> server;
};

Status WriteOne(Connection* connection, const std::string& data,
                const WaitLimit& limit = Soon()) {
  const Slice part(data);
  return connection->Write(&part, 1, limit);
}

TEST_CASE("Relay forwards both ways and passes an end on", "[relay][net]") {
  Relayed net;
  const std::string data = Pattern(3'000'000, 5);
  auto writer = InBackground([&] {
    const Status status = WriteOne(net.client.get(), data);
    net.client->Close();
    return status;
  });
  REQUIRE((ReadAll(net.server.get(), data.size() + 1) == data));
  REQUIRE_OK(writer.get());
  REQUIRE(net.relay->bytes(Relay::kToTarget) == data.size());
  REQUIRE(net.relay->connections() == 1);
}

TEST_CASE("Relay delays without slowing down", "[relay][net]") {
  Relayed net;
  net.relay->SetDelay(Relay::kToTarget, milliseconds(500));
  const auto start = Clock::now();
  const std::string data = Pattern(4'000'000, 6);
  auto writer =
      InBackground([&] { return WriteOne(net.client.get(), data); });
  REQUIRE((ReadAll(net.server.get(), data.size()) == data));
  const auto took = Clock::now() - start;
  REQUIRE_OK(writer.get());
  REQUIRE(took >= milliseconds(500));
  // If the relay waited for each piece of 64 KiB, it would take 30 s.
  REQUIRE(took < milliseconds(25'000));
}

TEST_CASE("Relay keeps a rate", "[relay][net]") {
  Relayed net;
  net.relay->SetRate(Relay::kToTarget, 4'000'000);
  const auto start = Clock::now();
  const std::string data = Pattern(1'000'000, 7);
  auto writer =
      InBackground([&] { return WriteOne(net.client.get(), data); });
  REQUIRE((ReadAll(net.server.get(), data.size()) == data));
  REQUIRE_OK(writer.get());
  REQUIRE(Clock::now() - start >= milliseconds(240));
}

TEST_CASE("Relay cuts after exactly the given bytes, and a reset is reported",
          "[relay][net]") {
  Relayed net;
  net.relay->CutAfter(Relay::kToTarget, 1000);
  REQUIRE_OK(WriteOne(net.client.get(), std::string(5000, 'x')));
  REQUIRE(net.relay->WaitForBytes(Relay::kToTarget, 1000));
  char byte;
  size_t got = 0;
  const Status status = net.client->Read(&byte, 1, Soon(), &got);
  INFO(status.ToString());
  REQUIRE(status.IsIOError());
  REQUIRE(EndStateOf(status) == EndState::kDeadPeer);
  REQUIRE(net.relay->bytes(Relay::kToTarget) == 1000);
  // The network stays cut until it is repaired.
  std::unique_ptr<Connection> again;
  if (net.dialer->Dial(Soon(), &again).ok()) {
    REQUIRE(again->Read(&byte, 1, Soon(), &got).IsIOError());
  }
  net.relay->CutAfter(Relay::kToTarget, Relay::kNever);
  net.client.reset();
  REQUIRE_OK(net.dialer->Dial(Soon(), &net.client));
  REQUIRE_OK(WriteOne(net.client.get(), "mended"));
  REQUIRE(net.relay->WaitForBytes(Relay::kToTarget, 1006));
}

TEST_CASE("Relay flips one byte and the channel notices",
          "[relay][net][corruption]") {
  Relayed net;
  net.relay->FlipAt(Relay::kToTarget, 70'000, 0x10);
  Channel client(std::move(net.client));
  Channel server(std::move(net.server));
  const std::string payload = Pattern(60'000, 8);
  REQUIRE_OK(client.Send(FrameType::kChunkData, payload));
  REQUIRE_OK(client.Send(FrameType::kChunkData, payload));
  Frame frame;
  REQUIRE_OK(server.Receive(Soon(), &frame));
  const Status status = server.Receive(Soon(), &frame);
  INFO(status.ToString());
  REQUIRE(status.IsCorruption());
}

TEST_CASE("Connection times out in a network that drops everything",
          "[relay][net]") {
  Relayed net;
  REQUIRE_OK(WriteOne(net.client.get(), "before"));
  REQUIRE(ReadAll(net.server.get(), 6) == "before");
  net.relay->SetDrop(Relay::kToTarget, true);
  REQUIRE_OK(WriteOne(net.client.get(), "lost"));
  WaitLimit limit;
  limit.idle = milliseconds(80);
  char byte;
  size_t got = 0;
  const Status status = net.server->Read(&byte, 1, limit, &got);
  INFO(status.ToString());
  REQUIRE(status.IsTimedOut());
  REQUIRE(net.relay->bytes(Relay::kToTarget) == 6);
}

TEST_CASE("Connection survives a stall and times out at a longer one",
          "[relay][net]") {
  Relayed net;
  net.relay->SetStall(Relay::kToTarget, true);
  WaitLimit limit;
  limit.idle = milliseconds(80);
  const std::string block(64 << 10, 'x');
  Status status;
  uint64_t accepted = 0;
  while (status.ok() && accepted < (1ull << 30)) {
    status = WriteOne(net.client.get(), block, limit);
    accepted += block.size();
  }
  INFO(status.ToString());
  REQUIRE(status.IsTimedOut());
  net.relay->SetStall(Relay::kToTarget, false);
  REQUIRE(ReadAll(net.server.get(), block.size()) == block);
}

TEST_CASE("Connection can answer after the peer's half has closed",
          "[relay][net]") {
  Relayed net;
  REQUIRE_OK(WriteOne(net.client.get(), "question"));
  REQUIRE(net.relay->WaitForBytes(Relay::kToTarget, 8));
  REQUIRE(ReadAll(net.server.get(), 8) == "question");
  net.relay->HalfClose(Relay::kToTarget);
  char byte;
  size_t got = 1;
  REQUIRE_OK(net.server->Read(&byte, 1, Soon(), &got));
  REQUIRE(got == 0);
  REQUIRE_OK(WriteOne(net.server.get(), "answer"));
  REQUIRE(ReadAll(net.client.get(), 6) == "answer");
}

TEST_CASE("Connection reports a reset to reader and writer", "[relay][net]") {
  Relayed net;
  auto reader = InBackground([&] {
    char byte;
    size_t got;
    return net.client->Read(&byte, 1, Soon(), &got);
  });
  auto writer = InBackground([&] {
    const std::string block(1 << 20, 'x');
    Status status;
    while (status.ok()) {
      status = WriteOne(net.server.get(), block);
    }
    return status;
  });
  // The writer fills the way to the client, whose reader has read one byte.
  REQUIRE(net.relay->WaitForBytes(Relay::kToClient, 1));
  REQUIRE_OK(reader.get());
  net.relay->ResetAll();
  const Status status = writer.get();
  INFO(status.ToString());
  REQUIRE(status.IsIOError());
  REQUIRE(EndStateOf(status) == EndState::kDeadPeer);
  REQUIRE(ReadAll(net.client.get(), 1ull << 20).size() <= (1ull << 20));
  net.relay->SetRefuse(true);
  REQUIRE(net.relay->connections() == 1);
}

}  // namespace
}  // namespace sstferry::relay_test
