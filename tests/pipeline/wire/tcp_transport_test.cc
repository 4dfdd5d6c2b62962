// Features of TCP only: names, ports, IPv6, peers that do not answer.
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <vector>

#include "format/end_state.h"
#include "pipeline/wire/connected_socket.h"
#include "tests/pipeline/wire/transports.h"
#include "tests/support/raw_tls.h"
#include "tests/support/silent_port.h"

namespace sstferry::tcp_transport_test {
namespace {

using rocksdb::Slice;
using rocksdb::Status;
using std::chrono::milliseconds;

size_t OpenDescriptors() {
  const std::filesystem::directory_iterator begin("/proc/self/fd");
  return static_cast<size_t>(
      std::distance(begin, std::filesystem::directory_iterator()));
}

TEST_CASE("TCP dialer names the address that refused", "[wire][net]") {
  Transport transport = TcpOne("127.0.0.1");
  const std::string address = transport.listener->address();
  transport.listener.reset();
  std::unique_ptr<Connection> connection;
  const Status status = transport.dialer->Dial(Soon(), &connection);
  REQUIRE(EndStateOf(status) == EndState::kDeadPeer);
  REQUIRE(MessageOf(status) == "connect " + address +
                                   ": connection refused; is `sstferry "
                                   "serve` running there?");
}

TEST_CASE("TCP dialer names a host that it did not find", "[wire][net]") {
  auto dialer = MakeTcpDialer({"no-such-host.invalid", 1});
  std::unique_ptr<Connection> connection;
  const Status status = dialer->Dial(Soon(), &connection);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kDeadPeer);
  REQUIRE(MessageOf(status).find("resolve no-such-host.invalid: ") == 0);
}

TEST_CASE("A connection to a near peer has a small send buffer",
          "[wire][net]") {
  Transport transport = TcpOne("127.0.0.1");
  HostPort where;
  REQUIRE_OK(ParseHostPort(transport.listener->address(), &where));
  const int raw = ConnectRaw(where);
  const Descriptor same(dup(raw));
  const ConnectedSocket socket(Descriptor(raw), "peer");
  int bytes = 0;
  socklen_t size = sizeof(bytes);
  REQUIRE(getsockopt(same.get(), SOL_SOCKET, SO_SNDBUF, &bytes, &size) == 0);
  // The kernel doubles the requested size, because it counts its own bytes,
  // too.
  REQUIRE(bytes == 2 * (128 << 10));
}

TEST_CASE("TCP write does not wait for a peer that has closed its side",
          "[wire][net]") {
  Transport transport = TcpOne("127.0.0.1");
  HostPort where;
  REQUIRE_OK(ParseHostPort(transport.listener->address(), &where));
  const int peer = ConnectRaw(where);
  std::unique_ptr<Connection> connection;
  REQUIRE_OK(transport.listener->Accept(&connection));
  REQUIRE(shutdown(peer, SHUT_WR) == 0);
  // The peer does not read, and never closes its socket.
  const std::string block(1 << 20, 'x');
  const Slice part(block);
  Status status;
  while (status.ok()) {
    status = connection->Write(&part, 1, WaitLimit::Forever());
  }
  REQUIRE(EndStateOf(status) == EndState::kDeadPeer);
  REQUIRE(MessageOf(status).find("write: ") != std::string::npos);
  close(peer);
}

TEST_CASE("TCP dialer connects by name", "[wire][net]") {
  Transport transport = TcpOne("127.0.0.1");
  HostPort where;
  REQUIRE_OK(ParseHostPort(transport.listener->address(), &where));
  where.host = "localhost";
  transport.dialer = MakeTcpDialer(where);
  Ends ends = transport.Connect();
  REQUIRE(ends.client->peer() == transport.listener->address());
}

TEST_CASE("TCP dialer gives up on a port that does not answer",
          "[wire][net]") {
  const SilentPort silent;
  auto dialer = MakeTcpDialer(silent.where());
  std::unique_ptr<Connection> connection;
  const Status status =
      dialer->Dial(WaitLimit::Within(milliseconds(80)), &connection);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kDeadPeer);
  REQUIRE(MessageOf(status).find("no answer in time") != std::string::npos);
}

TEST_CASE("TCP dialer wakes on Close", "[wire][net]") {
  const SilentPort silent;
  auto dialer = MakeTcpDialer(silent.where());
  auto dial = InBackground([&] {
    std::unique_ptr<Connection> connection;
    return dialer->Dial(WaitLimit::Forever(), &connection);
  });
  // The dial probably waits by then. The test is correct in any case.
  REQUIRE(dial.wait_for(milliseconds(50)) == std::future_status::timeout);
  dialer->Close();
  REQUIRE(dial.get().IsAborted());
}

TEST_CASE("TCP listener names a port that is taken", "[wire][net]") {
  Transport transport = TcpOne("127.0.0.1");
  HostPort where;
  REQUIRE_OK(ParseHostPort(transport.listener->address(), &where));
  std::unique_ptr<Listener> second;
  const Status status = ListenTcp(where, &second);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kRefused);
  REQUIRE(MessageOf(status) == "listen on " + ToString(where) +
                                   ": address already in use; is another "
                                   "`sstferry serve` running there?");
}

TEST_CASE("TCP listener can use its port again at once", "[wire][net]") {
  Transport transport = TcpOne("127.0.0.1");
  HostPort where;
  REQUIRE_OK(ParseHostPort(transport.listener->address(), &where));
  Ends ends = transport.Connect();
  // The server's side closes first and leaves the port in TIME_WAIT.
  ends.server.reset();
  ends.client.reset();
  transport.listener.reset();
  REQUIRE_OK(ListenTcp(where, &transport.listener));
}

TEST_CASE("TCP transport supports IPv6", "[wire][net]") {
  std::unique_ptr<Listener> listener;
  const Status listening = ListenTcp({"::1", 0}, &listener);
  if (!listening.ok()) {
    WARN("no IPv6 loopback here: " << listening.ToString());
    return;
  }
  REQUIRE(listener->address().find("[::1]:") == 0);
  Transport transport;
  HostPort bound;
  REQUIRE_OK(ParseHostPort(listener->address(), &bound));
  transport.listener = std::move(listener);
  transport.dialer = MakeTcpDialer(bound);
  Ends ends = transport.Connect();
  const Slice text("six");
  REQUIRE_OK(ends.server->Write(&text, 1, Soon()));
  REQUIRE(ReadAll(ends.client.get(), 3) == "six");
  REQUIRE(ends.server->peer().find("[::1]:") == 0);
}

TEST_CASE("TCP transport closes every descriptor", "[wire][net]") {
  Transport transport = TcpOne("127.0.0.1");
  transport.Connect();  // opens what a process opens only once
  const size_t before = OpenDescriptors();
  for (int i = 0; i < 20; ++i) {
    Ends ends = transport.Connect();
    ends.client->Close();
    // the server's descriptor is left
    REQUIRE(OpenDescriptors() == before + 1);
  }
  REQUIRE(OpenDescriptors() == before);
}

}  // namespace
}  // namespace sstferry::tcp_transport_test
