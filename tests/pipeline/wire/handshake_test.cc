#include "format/end_state.h"
#include "pipeline/wire/channel.h"
#include "tests/pipeline/wire/transports.h"

namespace sstferry::handshake_test {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

struct Pair {
  explicit Pair(Transport transport = MemoryOne()) {
    Ends ends = transport.Connect();
    client = std::make_unique<Channel>(std::move(ends.client));
    server = std::make_unique<Channel>(std::move(ends.server));
  }
  std::unique_ptr<Channel> client;
  std::unique_ptr<Channel> server;
};

Hello SampleHello() {
  Hello hello;
  hello.software = "sstferry test";
  hello.rocksdb_version = "7.8.3";
  hello.max_format_version = 5;
  hello.lane = 3;
  hello.kind = ConnectionKind::kLane;
  return hello;
}

TEST_CASE("CommonVersion is the newest version in both ranges", "[wire]") {
  struct Row {
    uint16_t oldest, newest, peer_oldest, peer_newest, common;
  };
  const Row rows[] = {
      {1, 1, 1, 1, 1}, {1, 1, 1, 2, 1}, {1, 2, 1, 1, 1}, {1, 2, 2, 3, 2},
      {2, 3, 1, 2, 2}, {1, 3, 1, 3, 3}, {1, 1, 2, 3, 0}, {3, 4, 1, 2, 0},
      {1, 1, 0, 0, 0}, {1, 2, 2, 1, 0}, {1, 65535, 65535, 65535, 65535},
  };
  for (const Row& row : rows) {
    INFO(row.oldest << ".." << row.newest << " with " << row.peer_oldest
                    << ".." << row.peer_newest);
    REQUIRE(CommonVersion(row.oldest, row.newest, row.peer_oldest,
                          row.peer_newest) == row.common);
    REQUIRE(CommonVersion(row.peer_oldest, row.peer_newest, row.oldest,
                          row.newest) == row.common);
  }
}

TEST_CASE("Handshake informs both sides about each other", "[wire][net]") {
  const TransportKind kind = GENERATE(from_range(kTransportKinds));
  INFO(kind.name);
  Pair pair(kind.make());
  Hello sent = SampleHello();
  sent.features |= 1ull << 63;  // an unknown feature is ignored
  sent.newest_version = 9;
  auto client = InBackground([&] {
    HelloAck ack;
    const Status status =
        ClientHandshake(pair.client.get(), sent, Soon(), &ack);
    return std::make_pair(status, ack);
  });
  Hello hello;
  HelloAck server_ack;
  REQUIRE_OK(ServerHandshake(pair.server.get(), "sstferry server", "9.10.0",
                             Soon(), &hello, &server_ack));
  const auto [status, ack] = client.get();
  REQUIRE_OK(status);
  REQUIRE(hello.software == "sstferry test");
  REQUIRE(hello.lane == 3);
  REQUIRE(hello.kind == ConnectionKind::kLane);
  REQUIRE(ack.version == kProtocolVersion);
  REQUIRE(ack.features == kSupportedFeatures);
  REQUIRE(ack.software == "sstferry server");
  REQUIRE(ack.rocksdb_version == "9.10.0");
  REQUIRE(server_ack.version == ack.version);
}

TEST_CASE("Handshake without a common version fails alike on both sides",
          "[wire][net]") {
  const TransportKind kind = GENERATE(from_range(kTransportKinds));
  INFO(kind.name);
  Pair pair(kind.make());
  Hello sent = SampleHello();
  sent.oldest_version = kProtocolVersion + 1;
  sent.newest_version = kProtocolVersion + 3;
  auto client = InBackground([&] {
    HelloAck ack;
    return ClientHandshake(pair.client.get(), sent, Soon(), &ack);
  });
  Hello hello;
  HelloAck ack;
  const Status server = ServerHandshake(pair.server.get(), "sstferry server",
                                        "9.10.0", Soon(), &hello, &ack);
  for (const Status& status : {server, client.get()}) {
    INFO(status.ToString());
    REQUIRE(EndStateOf(status) == EndState::kIncompatible);
    REQUIRE(status.ToString().find("sstferry server speaks 1, ") !=
            std::string::npos);
    REQUIRE(status.ToString().find("speaks 2 to 4") != std::string::npos);
  }
}

TEST_CASE("Client refuses a version or feature that it did not offer",
          "[wire]") {
  const Hello sent = SampleHello();
  for (const bool version : {true, false}) {
    Pair pair;
    auto server = InBackground([&] {
      Frame frame;
      Status status = pair.server->Receive(Soon(), &frame);
      HelloAck ack;
      ack.software = "odd";
      ack.version = version ? 4 : kProtocolVersion;
      ack.features = version ? 0 : kSupportedFeatures + 1;
      if (status.ok()) {
        status = pair.server->SendMessage(FrameType::kHelloAck, ack);
      }
      Ping ping;
      return status.ok() ? pair.server->ReceiveMessage(FrameType::kPing,
                                                       Soon(), &ping)
                         : status;
    });
    HelloAck ack;
    const Status client =
        ClientHandshake(pair.client.get(), sent, Soon(), &ack);
    INFO(client.ToString());
    REQUIRE(EndStateOf(client) == EndState::kIncompatible);
    REQUIRE(EndStateOf(server.get()) == EndState::kIncompatible);
  }
}

TEST_CASE("Server handshake with a silent peer ends at its limit",
          "[wire][net]") {
  const TransportKind kind = GENERATE(from_range(kTransportKinds));
  INFO(kind.name);
  Pair pair(kind.make());
  Hello hello;
  HelloAck ack;
  const Status status = ServerHandshake(
      pair.server.get(), "sstferry server", "9.10.0",
      WaitLimit::Within(std::chrono::milliseconds(50)), &hello, &ack);
  REQUIRE(status.IsTimedOut());
  // The silent peer gets the reason.
  Ping ping;
  const Status told =
      pair.client->ReceiveMessage(FrameType::kPing, Soon(), &ping);
  INFO(told.ToString());
  REQUIRE(EndStateOf(told) == EndState::kDeadPeer);
  REQUIRE_FALSE(told.IsIOError());
}

TEST_CASE("Server handshake answers another first frame with End",
          "[wire][corruption]") {
  Pair pair;
  REQUIRE_OK(pair.client->Send(FrameType::kChunkData, "x"));
  Hello hello;
  HelloAck ack;
  const Status status =
      ServerHandshake(pair.server.get(), "sstferry server", "9.10.0", Soon(),
                      &hello, &ack);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kCorrupt);
  Ping ping;
  REQUIRE(EndStateOf(pair.client->ReceiveMessage(
              FrameType::kPing, Soon(), &ping)) == EndState::kCorrupt);
}

TEST_CASE("SendEnd truncates text that is too long for an End frame",
          "[wire]") {
  Pair pair;
  SendEnd(pair.client.get(),
          MakeStatus(EndState::kNoSpace, std::string(100'000, 'm')),
          std::string(100'000, 'w'));
  End end;
  REQUIRE_OK(pair.server->ReceiveMessage(FrameType::kEnd, Soon(), &end));
  REQUIRE(end.state == EndState::kNoSpace);
  REQUIRE(end.message.size() > 1000);
}

}  // namespace
}  // namespace sstferry::handshake_test
