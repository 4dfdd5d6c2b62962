// The contract of transports, which each transport must pass.
#include <atomic>
#include <thread>
#include <vector>

#include "format/end_state.h"
#include "tests/pipeline/wire/transports.h"

namespace sstferry::transport_conformance_test {
namespace {

using rocksdb::Slice;
using rocksdb::Status;
using std::chrono::milliseconds;

Status WriteOne(Connection* connection, const std::string& data,
                const WaitLimit& limit = Soon()) {
  const Slice part(data);
  return connection->Write(&part, 1, limit);
}

// Writes to a peer that does not read, until the limit.
Status FillUp(Connection* connection, const WaitLimit& limit) {
  const std::string block(1 << 20, 'x');
  for (;;) {
    const Status status = WriteOne(connection, block, limit);
    if (!status.ok()) {
      return status;
    }
  }
}

TEST_CASE("Transport carries bytes both ways", "[wire][net]") {
  const TransportKind kind = GENERATE(from_range(kTransportKinds));
  INFO(kind.name);
  Transport transport = kind.make();
  Ends ends = transport.Connect();
  REQUIRE_OK(WriteOne(ends.client.get(), "hello"));
  REQUIRE(ReadAll(ends.server.get(), 5) == "hello");
  REQUIRE_OK(WriteOne(ends.server.get(), std::string("\0\xff", 2)));
  REQUIRE(ReadAll(ends.client.get(), 2) == std::string("\0\xff", 2));
  REQUIRE_FALSE(ends.client->peer().empty());
  REQUIRE_FALSE(ends.server->peer().empty());
}

TEST_CASE("Transport moves more than its buffers in both directions at once",
          "[wire][net]") {
  const TransportKind kind = GENERATE(from_range(kTransportKinds));
  INFO(kind.name);
  Transport transport = kind.make();
  Ends ends = transport.Connect();
  const std::string there = Pattern(24 << 20, 1);
  const std::string back = Pattern((24 << 20) + 13, 2);
  auto client_writes = InBackground(
      [&] { return WriteOne(ends.client.get(), there); });
  auto server_writes = InBackground(
      [&] { return WriteOne(ends.server.get(), back); });
  auto client_reads = InBackground(
      [&] { return ReadAll(ends.client.get(), back.size()); });
  REQUIRE((ReadAll(ends.server.get(), there.size()) == there));
  REQUIRE((client_reads.get() == back));
  REQUIRE_OK(client_writes.get());
  REQUIRE_OK(server_writes.get());
}

TEST_CASE("Transport writes gathered parts in order", "[wire][net]") {
  const TransportKind kind = GENERATE(from_range(kTransportKinds));
  INFO(kind.name);
  Transport transport = kind.make();
  Ends ends = transport.Connect();
  // More parts than fit into one system call, empty and large ones.
  std::vector<std::string> texts;
  std::string whole;
  for (uint32_t i = 0; i < 200; ++i) {
    texts.push_back(Pattern(i % 7 == 0 ? 0 : i % 50 == 1 ? 700'000 : i, i));
    whole += texts.back();
  }
  const std::vector<Slice> parts(texts.begin(), texts.end());
  auto writer = InBackground([&] {
    return ends.client->Write(parts.data(), parts.size(), Soon());
  });
  REQUIRE((ReadAll(ends.server.get(), whole.size()) == whole));
  REQUIRE_OK(writer.get());
}

TEST_CASE("Transport delivers all bytes that were written before a close",
          "[wire][net]") {
  const TransportKind kind = GENERATE(from_range(kTransportKinds));
  INFO(kind.name);
  Transport transport = kind.make();
  Ends ends = transport.Connect();
  // Unread bytes at the closing side must not prevent the delivery.
  REQUIRE_OK(WriteOne(ends.server.get(), "never read"));
  // That also holds while the bytes are still in this side's buffers.
  const std::string last_words = Pattern(1'500'000, 3);
  auto writer = InBackground([&] {
    const Status status = WriteOne(ends.client.get(), last_words);
    ends.client.reset();
    return status;
  });
  // The buffers of TCP can take all before a byte is read, those of the memory
  // transport cannot.
  writer.wait_for(milliseconds(100));
  REQUIRE((ReadAll(ends.server.get(), last_words.size()) == last_words));
  REQUIRE_OK(writer.get());
  char byte;
  size_t got = 1;
  REQUIRE_OK(ends.server->Read(&byte, 1, Soon(), &got));
  REQUIRE(got == 0);
}

TEST_CASE("Transport reports a write to a peer that closed", "[wire][net]") {
  const TransportKind kind = GENERATE(from_range(kTransportKinds));
  INFO(kind.name);
  Transport transport = kind.make();
  Ends ends = transport.Connect();
  ends.server.reset();
  const Status status = FillUp(ends.client.get(), Soon());
  INFO(status.ToString());
  REQUIRE(status.IsIOError());
  REQUIRE(EndStateOf(status) == EndState::kDeadPeer);
}

TEST_CASE("Transport wakes a reader and a writer on Close", "[wire][net]") {
  const TransportKind kind = GENERATE(from_range(kTransportKinds));
  INFO(kind.name);
  Transport transport = kind.make();
  Ends ends = transport.Connect();
  auto writer = InBackground(
      [&] { return FillUp(ends.client.get(), WaitLimit::Forever()); });
  std::promise<void> reading;
  auto reader = InBackground([&] {
    reading.set_value();
    char byte;
    size_t got;
    return ends.client->Read(&byte, 1, WaitLimit::Forever(), &got);
  });
  reading.get_future().wait();
  // Both probably wait by then. The test is correct in any case.
  REQUIRE(reader.wait_for(milliseconds(50)) == std::future_status::timeout);
  ends.client->Close();
  ends.client->Close();
  for (const Status& status : {reader.get(), writer.get()}) {
    INFO(status.ToString());
    REQUIRE(status.IsAborted());
    REQUIRE(EndStateOf(status) == EndState::kCancelled);
  }
  REQUIRE(WriteOne(ends.client.get(), "x").IsAborted());
  char byte;
  size_t got;
  REQUIRE(ends.client->Read(&byte, 1, Soon(), &got).IsAborted());
}

TEST_CASE("Transport wakes Accept on Close", "[wire][net]") {
  const TransportKind kind = GENERATE(from_range(kTransportKinds));
  INFO(kind.name);
  Transport transport = kind.make();
  std::promise<void> accepting;
  auto accept = InBackground([&] {
    accepting.set_value();
    std::unique_ptr<Connection> connection;
    return transport.listener->Accept(&connection);
  });
  accepting.get_future().wait();
  transport.listener->Close();
  REQUIRE(accept.get().IsAborted());
  std::unique_ptr<Connection> connection;
  REQUIRE(transport.listener->Accept(&connection).IsAborted());
}

TEST_CASE("A listener skips a client that left before it was accepted",
          "[wire][net]") {
  const TransportKind kind = GENERATE(from_range(kTransportKinds));
  INFO(kind.name);
  if (kind.make == &MemoryOne) return;  // accepts when a client connects
  Transport transport = kind.make();
  std::unique_ptr<Connection> left;
  REQUIRE_OK(transport.dialer->Dial(Soon(), &left));
  left.reset();
  std::unique_ptr<Connection> stays;
  REQUIRE_OK(transport.dialer->Dial(Soon(), &stays));
  auto accepted = InBackground([&] {
    std::unique_ptr<Connection> connection;
    return transport.listener->Accept(&connection).ok() ? std::move(connection)
                                                        : nullptr;
  });
  const std::unique_ptr<Connection> server = accepted.get();
  REQUIRE(server != nullptr);
  auto handshake = InBackground([&] { return server->Handshake(Soon()); });
  REQUIRE_OK(stays->Handshake(Soon()));
  REQUIRE_OK(handshake.get());
}

TEST_CASE("Dialer refuses after Close", "[wire][net]") {
  const TransportKind kind = GENERATE(from_range(kTransportKinds));
  INFO(kind.name);
  Transport transport = kind.make();
  transport.dialer->Close();
  std::unique_ptr<Connection> connection;
  REQUIRE(transport.dialer->Dial(Soon(), &connection).IsAborted());
}

TEST_CASE("Dialer fails if nothing listens", "[wire][net]") {
  const TransportKind kind = GENERATE(from_range(kTransportKinds));
  INFO(kind.name);
  Transport transport = kind.make();
  transport.listener.reset();
  std::unique_ptr<Connection> connection;
  if (kind.make == &StreamOne) {
    // A channel may be opened until the end of the stream has arrived.
    if (transport.dialer->Dial(Soon(), &connection).ok()) {
      char byte = 0;
      size_t got = 0;
      const Status ended = connection->Read(&byte, 1, Soon(), &got);
      REQUIRE(EndStateOf(ended) == EndState::kDeadPeer);
    }
  }
  const Status status = transport.dialer->Dial(Soon(), &connection);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kDeadPeer);
}

TEST_CASE("Transport ends a read after the idle limit", "[wire][net]") {
  const TransportKind kind = GENERATE(from_range(kTransportKinds));
  INFO(kind.name);
  Transport transport = kind.make();
  Ends ends = transport.Connect();
  WaitLimit limit;
  limit.idle = milliseconds(60);
  const auto start = Clock::now();
  char byte;
  size_t got;
  const Status status = ends.client->Read(&byte, 1, limit, &got);
  INFO(status.ToString());
  REQUIRE(status.IsTimedOut());
  REQUIRE(EndStateOf(status) == EndState::kDeadPeer);
  REQUIRE(Clock::now() - start >= milliseconds(60));
}

TEST_CASE("Transport ends a write to a peer that does not read",
          "[wire][net]") {
  const TransportKind kind = GENERATE(from_range(kTransportKinds));
  INFO(kind.name);
  Transport transport = kind.make();
  Ends ends = transport.Connect();
  WaitLimit limit;
  limit.idle = milliseconds(60);
  const Status status = FillUp(ends.client.get(), limit);
  INFO(status.ToString());
  REQUIRE(status.IsTimedOut());
}

TEST_CASE("Transport ends a write to a slow reader at the total limit",
          "[wire][net]") {
  const TransportKind kind = GENERATE(from_range(kTransportKinds));
  INFO(kind.name);
  Transport transport = kind.make();
  Ends ends = transport.Connect();
  std::atomic<bool> stop{false};
  auto drip = InBackground([&] {
    std::vector<char> buffer(32 << 10);
    while (!stop) {
      size_t got = 0;
      const Status status = ends.server->Read(
          buffer.data(), buffer.size(), Soon(), &got);
      if (!status.ok() || got == 0) {
        break;
      }
      std::this_thread::sleep_for(milliseconds(5));  // paces the slow reader
    }
  });
  WaitLimit limit = WaitLimit::Within(milliseconds(200));
  limit.idle = milliseconds(10'000);
  const Status status = FillUp(ends.client.get(), limit);
  stop = true;
  ends.client->Close();
  drip.get();
  INFO(status.ToString());
  REQUIRE(status.IsTimedOut());
  REQUIRE(status.ToString().find("time allowed") != std::string::npos);
}

}  // namespace
}  // namespace sstferry::transport_conformance_test
