// TLS and allow lists as an operator uses them: real processes on both ends.
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <future>

#include <nlohmann/json.hpp>

#include "pipeline/wire/tcp_socket.h"
#include "pipeline/wire/tls_connection.h"
#include "tests/support/catch.h"
#include "tests/support/certificates.h"
#include "tests/support/process.h"
#include "tests/support/raw_tls.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/serve_process.h"

namespace sstferry::tls_test {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

Words operator+(Words left, const Words& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

Words Tls(const TlsFiles& files) {
  return {"--tls-cert", files.cert, "--tls-key", files.key,
          "--tls-ca",   files.ca};
}

struct Ended {
  int code = -1;
  std::string status;
  std::string message;
  std::string err;
};

Ended RunJson(const Words& arguments) {
  Process process(Sstferry(arguments + Words{"--json"}));
  Ended ended;
  ended.code = process.Wait();
  ended.err = process.err();
  const json object = json::parse(process.out(), nullptr, false);
  INFO(process.out() << process.err());
  REQUIRE(object.is_object());
  REQUIRE(object["exit_code"] == ended.code);
  ended.status = object["status"];
  if (!object["error"].is_null()) {
    ended.message = object["error"]["message"];
  }
  return ended;
}

HostPort At(ServeProcess* server) {
  HostPort where;
  REQUIRE_OK(ParseHostPort(server->address(), &where));
  return where;
}

std::string Url(const std::string& host, ServeProcess* server) {
  return "sst://" + host + ":" + std::to_string(At(server).port) + "/db";
}

// A sample database, and pulls of it into numbered targets.
struct Bench {
  Bench() {
    SampleShape shape;
    shape.entries = 500;
    MakeSampleDatabase(dir / "source", shape);
  }
  Words db() const {
    return {"--db", std::string("db=").append(dir / "source")};
  }
  Ended Pull(const std::string& url, const Words& more) {
    return RunJson(
        Words{"pull", url, dir / ("target" + std::to_string(pulls++))} + more);
  }
  ScratchDir dir;
  int pulls = 0;
};

TEST_CASE("serve, pull, verify and plan work over TLS without --insecure",
          "[tools][tls]") {
  Bench bench;
  const TestPki& pki = GoodPki();
  ServeProcess server(bench.db() + Tls(pki.server) + Words{"--allow", "db=*"},
                      "0.0.0.0:0");
  const std::string url = Url("localhost", &server);
  const Words tls = Tls(pki.client);
  const Ended pulled = bench.Pull(url, tls + Words{"--verify"});
  INFO(pulled.message);
  REQUIRE(pulled.status == "OK");
  REQUIRE(RunJson(Words{"verify", url, bench.dir / "target0"} + tls).status ==
          "OK");
  REQUIRE(RunJson(Words{"verify", url, Url("127.0.0.1", &server)} + tls)
              .status == "OK");
  REQUIRE(RunJson(Words{"plan", url} + tls).status == "OK");
  Process plan(Sstferry(
      Words{"plan", url.substr(0, url.size() - 3)} + tls));
  REQUIRE(plan.Wait() == 0);
  REQUIRE(plan.out().find("serves 1 database") != std::string::npos);
  server.process().Signal(SIGTERM);
  REQUIRE(server.process().Wait(std::chrono::seconds(60)) == 0);
  REQUIRE(server.process().err().find("(CN=target): OK, ") !=
          std::string::npos);
  INFO(server.process().err());
  REQUIRE(server.process().err().find("warning") == std::string::npos);
}

struct BadClient {
  const char* name;
  std::string host;
  Words options;
  const char* client_says;
  const char* server_says;
};

TEST_CASE("A pull refused by TLS ends with DENIED on both ends, "
          "and the server keeps running",
          "[tools][tls]") {
  Bench bench;
  const TestPki& pki = GoodPki();
  const TestCa other(pki.directory.path(), "Other CA");
  TlsFiles of_other = other.Issue({"stranger", {}});
  of_other.ca = pki.ca.file();
  TlsFiles trusts_other = pki.client;
  trusts_other.ca = other.file();
  std::filesystem::create_directory(bench.dir / "twin");
  const TestCa twin(bench.dir / "twin", "Test CA");
  TlsFiles of_twin = twin.Issue({"twin", {}});
  of_twin.ca = pki.ca.file();
  const TlsFiles expired = pki.ca.Issue({"old", {}, -7200, -60, ""});
  ServeProcess server(bench.db() + Tls(pki.server), "0.0.0.0:0");
  const std::vector<BadClient> rows = {
      {"plain", "127.0.0.1", {}, "this source speaks TLS only",
       "found a plain sstferry connection"},
      {"another CA's client", "127.0.0.1", Tls(of_other),
       "it does not trust the CA that signed it",
       "the client's certificate (CN=stranger) is not signed by a CA of"},
      {"the client of another CA of the same name", "127.0.0.1", Tls(of_twin),
       "its signature is wrong; was it signed by another CA of the same name?",
       "the client's certificate (CN=twin)"},
      {"another CA trusted", "127.0.0.1", Tls(trusts_other),
       "the server's certificate (CN=source) is not signed by a CA of",
       "the client did not accept this server's certificate"},
      {"expired client", "127.0.0.1", Tls(expired), "it has expired",
       "the client's certificate (CN=old) expired on"},
      {"wrong name", "127.0.0.2", Tls(pki.client),
       "expected 127.0.0.2, found DNS:localhost, IP:127.0.0.1",
       "does it name the host that was dialed?"},
  };
  for (const BadClient& row : rows) {
    const Ended ended = bench.Pull(Url(row.host, &server), row.options);
    INFO(row.name << ": " << ended.message);
    CHECK(ended.status == "DENIED");
    CHECK(ended.code == 1);
    CHECK(ended.message.find(row.client_says) != std::string::npos);
    CHECK(server.process().WaitForErr(row.server_says));
  }
  RawTls(At(&server), {}).ReadAll();
  CHECK(server.process().WaitForErr("the client showed no certificate"));
  for (const std::string& bytes :
       {std::string(300, '\xa5'), std::string("\x16\x03\x01\x02\x00\x01", 6)}) {
    const int fd = ConnectRaw(At(&server));
    REQUIRE(send(fd, bytes.data(), bytes.size(), 0) ==
            static_cast<ssize_t>(bytes.size()));
    close(fd);
  }
  CHECK(server.process().WaitForErr("found something else"));
  CHECK(server.process().WaitForErr("the peer closed the connection"));
  REQUIRE(bench.Pull(Url("127.0.0.1", &server), Tls(pki.client)).status ==
          "OK");
  server.process().Signal(SIGTERM);
  REQUIRE(server.process().Wait(std::chrono::seconds(60)) == 0);
  REQUIRE(server.process().err().find("DENIED: TLS with peer 127.0.0.1") !=
          std::string::npos);
}

TEST_CASE("A pull with TLS from a plain server asks about --tls-cert there",
          "[tools][tls]") {
  Bench bench;
  ServeProcess server(bench.db());
  const Ended ended =
      bench.Pull(Url("127.0.0.1", &server), Tls(GoodPki().client));
  INFO(ended.message);
  REQUIRE(ended.status == "DENIED");
  REQUIRE(ended.code == 1);
  REQUIRE(ended.message.find("was the source started with --tls-cert") !=
          std::string::npos);
  REQUIRE(server.process().WaitForErr("expected a frame, found TLS"));
  REQUIRE(bench.Pull(Url("127.0.0.1", &server), {}).status == "OK");
}

TEST_CASE("serve --allow serves a database only to the named certificates",
          "[tools][tls]") {
  Bench bench;
  const TestPki& pki = GoodPki();
  const TlsFiles by_address =
      pki.ca.Issue({"other", {"IP:192.0.2.7", "DNS:other.example"}});
  const TlsFiles nearly = pki.ca.Issue({"target.example.org", {"DNS:Target"}});
  const std::string open = std::string("open=").append(bench.dir / "source");
  ServeProcess server(bench.db() + Words{"--db", open} + Tls(pki.server) +
                      Words{"--allow", "db=target.example", "--allow",
                            "db=192.0.2.7"});
  REQUIRE(server.process().WaitForErr(
      "--allow: missing for open: every certificate that --tls-ca"));
  const std::string url = Url("127.0.0.1", &server);
  const std::string list = "sst://" + server.address();
  for (const TlsFiles& files : {pki.client, by_address}) {
    REQUIRE(bench.Pull(url, Tls(files)).status == "OK");
  }
  const Ended denied = bench.Pull(url, Tls(nearly));
  INFO(denied.message);
  REQUIRE(denied.status == "DENIED");
  REQUIRE(denied.code == 1);
  REQUIRE(denied.message.find(
              "CN=target.example.org may not read database 'db'") !=
          std::string::npos);
  REQUIRE(server.process().WaitForErr(
      "(CN=target.example.org): DENIED: CN=target.example.org may not read "
      "database 'db'"));
  REQUIRE(RunJson(Words{"plan", url} + Tls(nearly)).status == "DENIED");
  Process names(Sstferry(Words{"plan", list} + Tls(nearly)));
  REQUIRE(names.Wait() == 0);
  REQUIRE(names.out().find("/open") != std::string::npos);
  REQUIRE(names.out().find("/db") == std::string::npos);
  REQUIRE(bench.Pull(list + "/open", Tls(nearly)).status == "OK");
}

TEST_CASE("serve --allow NAME=* serves a database to every certificate",
          "[tools][tls]") {
  Bench bench;
  const TestPki& pki = GoodPki();
  ServeProcess server(bench.db() + Tls(pki.server) + Words{"--allow", "db=*"});
  REQUIRE(bench.Pull(Url("127.0.0.1", &server), Tls(pki.client)).status ==
          "OK");
  server.process().Signal(SIGTERM);
  REQUIRE(server.process().Wait() == 0);
  REQUIRE(server.process().err().find("--allow") == std::string::npos);
}

TEST_CASE("A key that others can read causes a warning, "
          "a key with a passphrase an error",
          "[tools][tls]") {
  Bench bench;
  const TestPki& pki = GoodPki();
  TlsFiles files = pki.ca.Issue({"target", {}});
  REQUIRE(chmod(files.key.c_str(), GENERATE(0644, 0640)) == 0);
  ServeProcess server(bench.db() + Tls(pki.server));
  const Ended ended = bench.Pull(Url("127.0.0.1", &server), Tls(files));
  REQUIRE(ended.status == "OK");
  REQUIRE(ended.err.find("--tls-key " + files.key + ": others can read") !=
          std::string::npos);
  const std::string encrypted = bench.dir / "encrypted";
  WriteEncryptedKey(files.key, encrypted);
  files.key = encrypted;
  for (const Words& command :
       {Words{"pull", Url("127.0.0.1", &server), bench.dir / "t"},
        Words{"serve", "--listen", "127.0.0.1:0"} + bench.db()}) {
    const Ended refused = RunJson(command + Tls(files));
    INFO(refused.message);
    REQUIRE(refused.status == "REFUSED");
    REQUIRE(refused.code == 1);
    REQUIRE(refused.message.find("without a passphrase") !=
            std::string::npos);
  }
}

// Returns the openssl commands for a CA and two hosts in docs/security.md.
std::string CommandsOfDocument() {
  const std::string page = BytesOf(SSTFERRY_SOURCE_DIR "/docs/security.md");
  const size_t begin = page.find("openssl req -x509");
  REQUIRE(begin != std::string::npos);
  return page.substr(begin, page.find("```", begin) - begin);
}

TEST_CASE("plan warns about a certificate that will expire", "[tools][tls]") {
  Bench bench;
  const TestPki& pki = GoodPki();
  ServeProcess server(bench.db() + Tls(pki.server));
  const TlsFiles short_lived =
      pki.ca.Issue({"short-lived", {}, -3600, 3 * 86400, "clientAuth"});
  for (const TlsFiles& files : {pki.client, short_lived}) {
    Process plan(Sstferry(
        Words{"plan", server.url(), bench.dir / "target"} + Tls(files)));
    REQUIRE(plan.Wait() == 0);
    INFO(plan.err());
    REQUIRE((plan.err().find("--tls-cert ") != std::string::npos) ==
            (files.cert == short_lived.cert));
  }
}

TEST_CASE("The openssl commands of docs/security.md make certificates that "
          "work",
          "[tools][tls]") {
  const ScratchDir dir;
  Process bash({"/bin/bash", "-euc",
                "cd '" + dir.path() + "'\n" + CommandsOfDocument()});
  const int code = bash.Wait();
  INFO(bash.err());
  REQUIRE(code == 0);
  const TlsFiles source{dir / "source.pem", dir / "source.key", dir / "ca.pem"};
  const TlsFiles target{dir / "target.pem", dir / "target.key", dir / "ca.pem"};
  REQUIRE(TlsWarnings(source).empty());
  REQUIRE(TlsWarnings(target).empty());
  std::unique_ptr<Listener> listener;
  REQUIRE_OK(ListenTls({"127.0.0.1", 0}, source, &listener));
  HostPort where;
  REQUIRE_OK(ParseHostPort(listener->address(), &where));
  std::shared_ptr<const TlsContext> context;
  REQUIRE_OK(TlsContext::Load(target, TlsRole::kClient, &context));
  // Dials the address, but checks the certificate for source.example, as if DNS
  // knew that name.
  const std::unique_ptr<Dialer> dialer = MakeDialerWith(
      where, [&](Descriptor socket, const TcpAddress& peer) {
        return MakeTlsConnection(std::move(socket), peer, context,
                                 "source.example");
      });
  const WaitLimit limit = WaitLimit::Within(std::chrono::seconds(60));
  std::unique_ptr<Connection> client;
  std::unique_ptr<Connection> server;
  REQUIRE_OK(dialer->Dial(limit, &client));
  REQUIRE_OK(listener->Accept(&server));
  auto serving = std::async(std::launch::async,
                            [&] { return server->Handshake(limit); });
  REQUIRE_OK(client->Handshake(limit));
  REQUIRE_OK(serving.get());
  REQUIRE(server->identity()->names ==
          std::vector<std::string>{"target", "target.example"});
}

}  // namespace
}  // namespace sstferry::tls_test
