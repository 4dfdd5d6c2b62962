// All implementations of the transport, for tests that each must pass.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "format/end_state.h"
#include "pipeline/wire/multiplexer.h"
#include "sstferry/transport.h"
#include "tests/support/catch.h"
#include "tests/support/certificates.h"
#include "tests/support/scratch_dir.h"

namespace sstferry {

struct Ends {
  std::unique_ptr<Connection> client;
  std::unique_ptr<Connection> server;
};

// A listener and a dialer that reaches it.
struct Transport {
  std::unique_ptr<Listener> listener;
  std::unique_ptr<Dialer> dialer;
  std::shared_ptr<const ScratchDir> dir{};  // contains a Unix socket

  Ends Connect() {
    Ends ends;
    REQUIRE_OK(dialer->Dial(WaitLimit::Within(std::chrono::seconds(60)),
                            &ends.client));
    REQUIRE_OK(listener->Accept(&ends.server));
    const WaitLimit limit = WaitLimit::Within(std::chrono::seconds(60));
    auto server = std::async(std::launch::async, [&] {
      return ends.server->Handshake(limit);
    });
    REQUIRE_OK(ends.client->Handshake(limit));
    REQUIRE_OK(server.get());
    return ends;
  }
};

inline Transport MemoryOne() {
  MemoryTransport memory = MakeMemoryTransport(64u << 10);
  return {std::move(memory.listener), std::move(memory.dialer)};
}

inline Transport TcpOne(const std::string& host) {
  Transport transport;
  REQUIRE_OK(ListenTcp(HostPort{host, 0}, &transport.listener));
  HostPort bound;
  REQUIRE_OK(ParseHostPort(transport.listener->address(), &bound));
  transport.dialer = MakeTcpDialer(bound);
  return transport;
}

inline Transport UnixOne() {
  Transport transport;
  transport.dir = std::make_shared<const ScratchDir>();
  const std::string path = *transport.dir / "socket";
  REQUIRE_OK(ListenUnix(path, {}, &transport.listener));
  transport.dialer = MakeUnixDialer(path);
  return transport;
}

// Both ends of a stream in this process.
struct StreamPair {
  std::unique_ptr<Multiplexer> dials;
  std::unique_ptr<Multiplexer> accepts;
};
struct StreamFds {
  Descriptor dials;
  Descriptor accepts;
};
inline StreamFds MakeStreamFds() {
  int pair[2] = {-1, -1};
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
  return {Descriptor(pair[0]), Descriptor(pair[1])};
}
inline MultiplexerOptions StreamOptions(bool dials) {
  MultiplexerOptions options;
  options.dials = dials;
  options.peer = dials ? "accepting side" : "dialing side";
  return options;
}

class StreamDialer final : public Dialer {
 public:
  explicit StreamDialer(Descriptor socket) {
    std::unique_ptr<Multiplexer> started;
    REQUIRE_OK(Multiplexer::Start(std::move(socket), Descriptor(),
                                  StreamOptions(true), &started));
    multiplexer_ = {started.release(), [](Multiplexer* ended) {
                      ended->Finish(std::chrono::seconds(60),
                                    std::chrono::milliseconds(0));
                      delete ended;
                    }};
  }
  rocksdb::Status Dial(const WaitLimit& limit,
                       std::unique_ptr<Connection>* connection) override {
    RETURN_IF_ERROR(multiplexer_->AwaitHello(limit));
    return multiplexer_->Open(connection, multiplexer_);
  }
  void Close() override { multiplexer_->StopWaiting(); }
  const std::string& address() const override { return address_; }

 private:
  std::shared_ptr<Multiplexer> multiplexer_;
  const std::string address_ = "stream";
};

inline Transport StreamOne() {
  StreamFds fds = MakeStreamFds();
  Transport transport;
  const int in = dup(fds.accepts.get());
  const int out = dup(fds.accepts.get());
  REQUIRE_OK(ListenStream(in, out, "dialing side", std::chrono::milliseconds(0),
                          &transport.listener));
  transport.dialer = std::make_unique<StreamDialer>(std::move(fds.dials));
  return transport;
}

// Returns a TLS transport. Its dialer expects a certificate with the name
// `host`.
inline Transport TlsOne(const std::string& host, const TlsFiles& server,
                        const TlsFiles& client) {
  Transport transport;
  REQUIRE_OK(ListenTls(HostPort{"127.0.0.1", 0}, server, &transport.listener));
  HostPort where;
  REQUIRE_OK(ParseHostPort(transport.listener->address(), &where));
  where.host = host;
  REQUIRE_OK(MakeTlsDialer(where, client, &transport.dialer));
  return transport;
}

struct TransportKind {
  const char* name;
  Transport (*make)();
};
inline const std::vector<TransportKind> kTransportKinds = {
    {"memory", &MemoryOne},
    {"tcp 127.0.0.1", [] { return TcpOne("127.0.0.1"); }},
    {"unix", &UnixOne},
    {"stream", &StreamOne},
    {"tls 127.0.0.1",
     [] { return TlsOne("127.0.0.1", GoodPki().server, GoodPki().client); }},
};

// Runs `function` in another thread. The returned future joins it.
template <typename Function>
auto InBackground(Function&& function) {
  return std::async(std::launch::async, std::forward<Function>(function));
}

inline WaitLimit Soon() { return WaitLimit::Within(std::chrono::seconds(60)); }

// Reads until `bytes` bytes have arrived or the stream has ended.
inline std::string ReadAll(Connection* connection, size_t bytes) {
  std::string data(bytes, '\0');
  size_t done = 0;
  while (done < bytes) {
    size_t got = 0;
    const rocksdb::Status status =
        connection->Read(data.data() + done, bytes - done, Soon(), &got);
    if (!status.ok() || got == 0) {
      break;
    }
    done += got;
  }
  data.resize(done);
  return data;
}

inline std::string Pattern(size_t bytes, uint32_t seed) {
  std::string data(bytes, '\0');
  uint32_t x = seed * 2654435761u + 1;
  for (char& c : data) {
    x = x * 1664525u + 1013904223u;
    c = static_cast<char>(x >> 24);
  }
  return data;
}

}  // namespace sstferry
