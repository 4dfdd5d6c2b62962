// Features of TLS only: identities of peers, and all the ways to be denied.
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "format/end_state.h"
#include "pipeline/wire/channel.h"
#include "pipeline/wire/tcp_socket.h"
#include "pipeline/wire/tls_connection.h"
#include "tests/pipeline/wire/transports.h"
#include "tests/support/raw_tls.h"
#include "tests/support/relay.h"

namespace sstferry::tls_transport_test {
namespace {

using rocksdb::Slice;
using rocksdb::Status;
using std::chrono::milliseconds;

HostPort Where(const Transport& transport) {
  HostPort where;
  REQUIRE_OK(ParseHostPort(transport.listener->address(), &where));
  return where;
}

// The status of each side after a handshake and a read.
struct Outcome {
  Status client;
  Status server;
};

Status ShakeAndRead(Connection* connection) {
  Status status = connection->Handshake(Soon());
  char byte = 0;
  size_t got = 0;
  return status.ok() ? connection->Read(&byte, 1, Soon(), &got) : status;
}

Outcome Try(Transport* transport) {
  std::unique_ptr<Connection> client;
  std::unique_ptr<Connection> server;
  REQUIRE_OK(transport->dialer->Dial(Soon(), &client));
  REQUIRE_OK(transport->listener->Accept(&server));
  Outcome outcome;
  auto serving = InBackground([&] {
    const Status status = server->Handshake(Soon());
    server->Close();
    return status;
  });
  outcome.client = ShakeAndRead(client.get());
  client->Close();
  outcome.server = serving.get();
  return outcome;
}

bool Says(const Status& status, const std::string& text) {
  return MessageOf(status).find(text) != std::string::npos;
}

struct BadPair {
  const char* name;
  TlsFiles server;
  TlsFiles client;
  const char* host;
  const char* client_says;
  const char* server_says;
};

std::vector<BadPair> BadPairs() {
  static const TestPki& pki = GoodPki();
  static const TestCa other(pki.directory.path(), "Other CA");
  static const ScratchDir twin_dir;
  static const TestCa twin(twin_dir.path(), "Test CA");
  TlsFiles of_twin = twin.Issue({"target"});
  of_twin.ca = pki.ca.file();
  const auto server = [](const CertificateSpec& spec) {
    return pki.ca.Issue(spec);
  };
  TlsFiles trusts_other_server = pki.server;
  trusts_other_server.ca = other.file();
  TlsFiles trusts_other_client = pki.client;
  trusts_other_client.ca = other.file();
  const std::vector<std::string> here = {"IP:127.0.0.1"};
  return {
      {"the client trusts another CA", pki.server, trusts_other_client,
       "127.0.0.1",
       "the server's certificate (CN=source) is not signed by a CA of --tls-ca",
       "the client did not accept this server's certificate"},
      {"the server trusts another CA", trusts_other_server, pki.client,
       "127.0.0.1",
       "the server did not accept this client's certificate (--tls-cert",
       "the client's certificate (CN=target) is not signed by a CA of"},
      {"a client of another CA of the same name", pki.server, of_twin,
       "127.0.0.1",
       "the server did not accept this client's certificate (--tls-cert",
       "the client's certificate (CN=target) is not signed by a CA of"},
      {"an expired server", server({"old", here, -7200, -60, ""}), pki.client,
       "127.0.0.1", "the server's certificate (CN=old) expired on 20",
       "did not accept this server's certificate"},
      {"an expired client", pki.server, server({"old", {}, -7200, -60, ""}),
       "127.0.0.1", "it has expired",
       "the client's certificate (CN=old) expired on 20"},
      {"a server of tomorrow", server({"new", here, 86400, 90000, ""}),
       pki.client, "127.0.0.1", "(CN=new) is not valid before 20",
       "did not accept this server's certificate"},
      {"a server of another name", server({"x", {"DNS:x.example"}}),
       pki.client, "localhost",
       "is for another name: expected localhost, found DNS:x.example",
       "does it name the host that was dialed?"},
      {"a name that is only the common name", server({"localhost", {}}),
       pki.client, "localhost", "expected localhost, found no DNS or IP name",
       "does it name the host that was dialed?"},
      {"an address that is only a DNS name",
       server({"x", {"DNS:127.0.0.1"}}), pki.client, "127.0.0.1",
       "expected 127.0.0.1, found DNS:127.0.0.1",
       "does it name the host that was dialed?"},
      {"a client that poses as a server", pki.client, pki.client, "127.0.0.1",
       "may not be used by a server", "it may not be used by a server"},
      {"a server that poses as a client", pki.server, pki.server, "127.0.0.1",
       "it may not be used by a client", "may not be used by a client"},
  };
}

TEST_CASE("TLS gives each side the identity of the other", "[wire][tls]") {
  Transport transport =
      TlsOne("localhost", GoodPki().server, GoodPki().client);
  const Ends ends = transport.Connect();
  REQUIRE(ends.client->identity() != nullptr);
  REQUIRE(ends.client->identity()->subject == "CN=source");
  REQUIRE(ends.client->identity()->names ==
          std::vector<std::string>{"source", "localhost", "127.0.0.1"});
  REQUIRE(ends.server->identity()->subject == "CN=target");
  REQUIRE(ends.server->identity()->names ==
          std::vector<std::string>{"target", "target.example"});
  Transport plain = TcpOne("127.0.0.1");
  REQUIRE(plain.Connect().server->identity() == nullptr);
}

TEST_CASE("TLS denies each bad pair of certificates, and both sides say why",
          "[wire][tls]") {
  for (const BadPair& pair : BadPairs()) {
    Transport transport = TlsOne(pair.host, pair.server, pair.client);
    const Outcome outcome = Try(&transport);
    INFO(pair.name << "\nclient: " << outcome.client.ToString()
                   << "\nserver: " << outcome.server.ToString());
    CHECK(EndStateOf(outcome.client) == EndState::kDenied);
    CHECK(EndStateOf(outcome.server) == EndState::kDenied);
    CHECK(Says(outcome.client, pair.client_says));
    CHECK(Says(outcome.server, pair.server_says));
  }
}

TEST_CASE("A denied TLS client gets the reason even while it writes",
          "[wire][tls]") {
  const TestCa other(GoodPki().directory.path(), "Other CA");
  TlsFiles server_files = GoodPki().server;
  server_files.ca = other.file();
  Transport transport =
      TlsOne("127.0.0.1", server_files, GoodPki().client);
  const std::string block(64 << 10, 'x');
  for (int i = 0; i < 20; ++i) {
    std::unique_ptr<Connection> client;
    std::unique_ptr<Connection> server;
    REQUIRE_OK(transport.dialer->Dial(Soon(), &client));
    REQUIRE_OK(transport.listener->Accept(&server));
    auto serving = InBackground([&] {
      const Status status = server->Handshake(Soon());
      server.reset();
      return status;
    });
    Status status = client->Handshake(Soon());
    while (status.ok()) {
      const Slice part(block);
      status = client->Write(&part, 1, Soon());
    }
    INFO(status.ToString());
    REQUIRE(EndStateOf(status) == EndState::kDenied);
    REQUIRE(EndStateOf(serving.get()) == EndState::kDenied);
  }
}

// Returns the status of a TLS server's handshake with a foreign peer, and
// checks that the server still works. The peer runs in another thread, so it
// must not use Catch2's macros.
Status ServerStatus(Transport* transport,
                    const std::function<void(const HostPort&)>& stranger,
                    const WaitLimit& limit = Soon()) {
  const HostPort where = Where(*transport);
  auto running = InBackground([&] { stranger(where); });
  std::unique_ptr<Connection> server;
  REQUIRE_OK(transport->listener->Accept(&server));
  const Status status = server->Handshake(limit);
  server.reset();
  running.get();
  transport->Connect();
  return status;
}

TEST_CASE("TLS server denies a client without a certificate or with TLS 1.2",
          "[wire][tls]") {
  Transport transport =
      TlsOne("127.0.0.1", GoodPki().server, GoodPki().client);
  int alert = -1;
  Status status = ServerStatus(&transport, [&](const HostPort& where) {
    RawTls raw(where, {});
    raw.ReadAll();
    alert = raw.alert();
  });
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kDenied);
  REQUIRE(Says(status, "the client showed no certificate"));
  REQUIRE(alert == SSL_AD_CERTIFICATE_REQUIRED);

  bool shaken = true;
  RawTlsOptions old;
  old.files = GoodPki().client;
  old.max_version = TLS1_2_VERSION;
  status = ServerStatus(&transport, [&](const HostPort& where) {
    shaken = RawTls(where, old).shaken();
  });
  INFO(status.ToString());
  REQUIRE_FALSE(shaken);
  REQUIRE(EndStateOf(status) == EndState::kDenied);
  REQUIRE(Says(status, "expected TLS 1.3, found an older version"));
}

TEST_CASE("TLS server survives garbage, half a handshake and a slow one",
          "[wire][tls]") {
  Transport transport =
      TlsOne("127.0.0.1", GoodPki().server, GoodPki().client);
  Status status = ServerStatus(&transport, [&](const HostPort& where) {
    const int fd = ConnectRaw(where);
    const std::string garbage = Pattern(4000, 7);
    send(fd, garbage.data(), garbage.size(), MSG_NOSIGNAL);
    close(fd);
  });
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kDenied);
  REQUIRE(Says(status, "expected a TLS 1.3 handshake, found something else"));

  // A record that announces more bytes than it has.
  const std::string half("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
  status = ServerStatus(&transport, [&](const HostPort& where) {
    const int fd = ConnectRaw(where);
    send(fd, half.data(), half.size(), MSG_NOSIGNAL);
    close(fd);
  });
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kDeadPeer);
  REQUIRE(Says(status, "the peer closed the connection"));

  // Sending byte by byte does not extend the limit.
  status = ServerStatus(
      &transport,
      [&](const HostPort& where) {
        const int fd = ConnectRaw(where);
        std::string drip = half + std::string(500, '\0');
        for (const char& byte : drip) {
          if (send(fd, &byte, 1, MSG_NOSIGNAL) != 1) {
            break;
          }
          std::this_thread::sleep_for(milliseconds(5));  // the drip itself
        }
        close(fd);
      },
      WaitLimit::Within(milliseconds(200)));
  INFO(status.ToString());
  REQUIRE(status.IsTimedOut());
}

TEST_CASE("TLS server answers a plain client in its protocol, with a reason",
          "[wire][tls]") {
  Transport transport =
      TlsOne("127.0.0.1", GoodPki().server, GoodPki().client);
  Status client_status;
  const Status status = ServerStatus(&transport, [&](const HostPort& where) {
    std::unique_ptr<Connection> connection;
    client_status = MakeTcpDialer(where)->Dial(Soon(), &connection);
    if (client_status.ok()) {
      Channel channel(std::move(connection));
      HelloAck ack;
      client_status = ClientHandshake(&channel, Hello(), Soon(), &ack);
    }
  });
  INFO(status.ToString() << "\n" << client_status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kDenied);
  REQUIRE(Says(status, "found a plain sstferry connection"));
  REQUIRE(EndStateOf(client_status) == EndState::kDenied);
  REQUIRE(Says(client_status, "this source speaks TLS only: give --tls DIR"));
}

TEST_CASE("TLS client and plain server both say what is missing",
          "[wire][tls]") {
  Transport plain = TcpOne("127.0.0.1");
  std::unique_ptr<Dialer> dialer;
  REQUIRE_OK(MakeTlsDialer(Where(plain), GoodPki().client, &dialer));
  std::unique_ptr<Connection> client;
  std::unique_ptr<Connection> server;
  REQUIRE_OK(dialer->Dial(Soon(), &client));
  REQUIRE_OK(plain.listener->Accept(&server));
  Channel channel(std::move(server));
  auto serving = InBackground([&] {
    Hello hello;
    HelloAck ack;
    const Status status =
        ServerHandshake(&channel, "test", "1", Soon(), &hello, &ack);
    channel.Close();
    return status;
  });
  const Status status = client->Handshake(Soon());
  const Status server_status = serving.get();
  INFO(status.ToString() << "\n" << server_status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kDenied);
  REQUIRE(Says(status, "was the source started with --tls-cert"));
  REQUIRE(EndStateOf(server_status) == EndState::kDenied);
  REQUIRE(Says(server_status, "expected a frame, found TLS"));
}

TEST_CASE("TLS reports changed bytes and a cut as a dead peer, not as an end",
          "[wire][tls]") {
  Transport direct = TlsOne("127.0.0.1", GoodPki().server, GoodPki().client);
  Relay relay(Where(direct));
  Transport transport;
  transport.listener = std::move(direct.listener);
  REQUIRE_OK(
      MakeTlsDialer(relay.address(), GoodPki().client, &transport.dialer));
  const std::string data(100'000, 'd');
  const Slice part(data);
  char byte = 0;
  size_t got = 0;
  {
    Ends ends = transport.Connect();
    relay.FlipAt(Relay::kToTarget, relay.bytes(Relay::kToTarget) + 50'000);
    REQUIRE_OK(ends.client->Write(&part, 1, Soon()));
    const std::string read = ReadAll(ends.server.get(), data.size());
    REQUIRE(read.size() < 50'000);
    REQUIRE(read == data.substr(0, read.size()));
    const Status status = ends.server->Read(&byte, 1, Soon(), &got);
    INFO(status.ToString());
    REQUIRE(EndStateOf(status) == EndState::kDeadPeer);
    REQUIRE(Says(status, "bytes were changed on the way"));
  }
  Ends ends = transport.Connect();
  REQUIRE_OK(ends.client->Write(&part, 1, Soon()));
  REQUIRE(ReadAll(ends.server.get(), data.size()) == data);
  relay.HalfClose(Relay::kToTarget);
  const Status status = ends.server->Read(&byte, 1, Soon(), &got);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kDeadPeer);
  REQUIRE(Says(status, "the connection was cut"));
}

TEST_CASE("TLS changes its keys after a certain amount of data",
          "[wire][tls]") {
  std::shared_ptr<const TlsContext> context;
  REQUIRE_OK(TlsContext::Load(GoodPki().server, TlsRole::kServer, &context));
  constexpr uint64_t kRekeyBytes = 1 << 20;
  std::unique_ptr<Listener> listener;
  REQUIRE_OK(ListenWith(
      {"127.0.0.1", 0},
      [&](Descriptor socket, const TcpAddress& peer) {
        return MakeTlsConnection(std::move(socket), peer, context, "",
                                 kRekeyBytes);
      },
      &listener));
  HostPort where;
  REQUIRE_OK(ParseHostPort(listener->address(), &where));
  auto serving = InBackground([&] {
    std::unique_ptr<Connection> server;
    Status status = listener->Accept(&server);
    const std::string data(10 << 20, 'k');
    const Slice part(data);
    status = status.ok() ? server->Handshake(Soon()) : status;
    return status.ok() ? server->Write(&part, 1, Soon()) : status;
  });
  RawTlsOptions options;
  options.files = GoodPki().client;
  RawTls raw(where, options);
  REQUIRE(raw.ReadAll() == (10 << 20));
  REQUIRE_OK(serving.get());
  REQUIRE(raw.key_updates() == 9);
}

TEST_CASE("TLS says which of its files cannot be used", "[wire][tls]") {
  const TestPki& pki = GoodPki();
  const ScratchDir scratch;
  const std::string noise = scratch / "noise";
  std::ofstream(noise) << "no certificate\n";
  const std::string encrypted = scratch / "encrypted";
  WriteEncryptedKey(pki.client.key, encrypted);
  const std::string missing = scratch / "missing";
  const auto with = [&](const char* which, const std::string& file) {
    TlsFiles files = pki.client;
    (which == std::string("cert") ? files.cert
     : which == std::string("key") ? files.key
                                   : files.ca) = file;
    return files;
  };
  const std::vector<std::pair<TlsFiles, std::string>> rows = {
      {with("cert", missing), "--tls-cert " + missing + ": No such file"},
      {with("key", missing), "--tls-key " + missing + ": No such file"},
      {with("ca", missing), "--tls-ca " + missing + ": No such file"},
      {with("ca", scratch.path()), ": expected a file"},
      {with("cert", noise), "--tls-cert " + noise + ": expected PEM"},
      {with("key", noise), "--tls-key " + noise + ": expected a PEM private"},
      {with("ca", noise), "--tls-ca " + noise + ": expected PEM"},
      {with("key", pki.server.key), "is not the key of --tls-cert"},
      {with("key", encrypted), "expected a key without a passphrase"},
  };
  for (const auto& [files, text] : rows) {
    std::unique_ptr<Dialer> dialer;
    const Status status = MakeTlsDialer({"localhost", 1}, files, &dialer);
    INFO(text << "\n" << status.ToString());
    CHECK(EndStateOf(status) == EndState::kRefused);
    CHECK(Says(status, text));
  }
}

TEST_CASE(
    "TLS warns about a key that others can read and an expiring certificate",
    "[wire][tls]") {
  const TestPki& pki = GoodPki();
  REQUIRE(TlsWarnings(pki.client).empty());
  REQUIRE(TlsWarnings(TlsFiles()).empty());
  TlsFiles open = pki.ca.Issue({"open", {}});
  REQUIRE(chmod(open.key.c_str(), 0644) == 0);
  const std::vector<std::string> warnings = TlsWarnings(open);
  REQUIRE(warnings.size() == 1);
  REQUIRE(warnings[0].find("(mode 0644); chmod 600") != std::string::npos);
  const std::vector<std::pair<CertificateSpec, std::string>> rows = {
      {{"old", {}, -7200, -60}, ": expired on 20"},
      {{"new", {}, 7200, 90 * 86400}, ": is not valid before 20"},
      {{"soon", {}, -60, 3 * 86400}, ": expires on 20"}};
  for (const auto& [spec, text] : rows) {
    const std::vector<std::string> said = TlsWarnings(pki.ca.Issue(spec));
    REQUIRE(said.size() == 1);
    REQUIRE(said[0].find(text) != std::string::npos);
  }
}

TEST_CASE("Limits count IPv4 peers by address and IPv6 peers by network",
          "[wire]") {
  REQUIRE(PeerAddress("192.0.2.7:52114") == "192.0.2.7");
  REQUIRE(PeerAddress("[2001:db8:1:2:3:4:5:6]:7") == "2001:db8:1:2::/64");
  REQUIRE(PeerAddress("[2001:db8:1:2::9]:8") == "2001:db8:1:2::/64");
  REQUIRE(PeerAddress("[::ffff:192.0.2.7]:9") == "::ffff:192.0.2.7");
  REQUIRE(PeerAddress("in-process") == "in-process");
}

}  // namespace
}  // namespace sstferry::tls_transport_test
