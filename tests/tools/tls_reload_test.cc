// SIGHUP to a server: it reloads certificates and allow lists.
#include <signal.h>

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/certificates.h"
#include "tests/support/process.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/serve_process.h"

namespace sstferry::tls_reload_test {
namespace {

std::string Lines(const TlsFiles& files) {
  return "tls-cert = \"" + files.cert + "\"\ntls-key = \"" + files.key +
         "\"\ntls-ca = \"" + files.ca + "\"\n";
}

std::string PlanStatus(const std::string& url, const TlsFiles& files) {
  Process plan(Sstferry({"plan", url, "--json", "--tls-cert", files.cert,
                         "--tls-key", files.key, "--tls-ca", files.ca}));
  plan.Wait();
  const auto json = nlohmann::json::parse(plan.out(), nullptr, false);
  INFO(plan.out() << plan.err());
  REQUIRE(json.is_object());
  return json["status"];
}

// Waits for the status that a plan gets. For reloads whose log line is the same
// as that of an earlier reload.
void AwaitStatus(const std::string& url, const TlsFiles& files,
                 const std::string& status) {
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (PlanStatus(url, files) != status &&
         std::chrono::steady_clock::now() < until) {
  }
  REQUIRE(PlanStatus(url, files) == status);
}

TEST_CASE("SIGHUP makes a server reload its allow list and certificates, or "
          "keep both on an error",
          "[tools][tls]") {
  const ScratchDir dir;
  SampleShape shape;
  shape.entries = 500;
  MakeSampleDatabase(dir / "source", shape);
  const TestPki& pki = GoodPki();
  const ScratchDir other_files;
  const TestCa other(other_files.path(), "Other CA");
  const TlsFiles other_server = other.Issue(
      {"other", {"DNS:localhost", "IP:127.0.0.1"}, -3600, 86400,
       "serverAuth"});
  const TlsFiles other_client =
      other.Issue({"target", {}, -3600, 86400, "clientAuth"});
  const std::string conf = dir / "serve.toml";
  const auto write = [&](const TlsFiles& files, const std::string& allowed) {
    WriteBytes(conf, Lines(files) + "[[database]]\nname = \"db\"\n" +
                         "directory = \"" + (dir / "source") +
                         "\"\nallow = [\"" + allowed + "\"]\n");
  };
  write(pki.server, "nobody");
  ServeProcess server({"--config", conf});
  const auto reload = [&](const std::string& says) {
    server.process().Signal(SIGHUP);
    const bool said = server.process().WaitForErr(says);
    INFO(server.process().err());
    REQUIRE(said);
  };
  REQUIRE(PlanStatus(server.url(), pki.client) == "DENIED");
  write(pki.server, "target");
  reload("new connections use");
  REQUIRE(PlanStatus(server.url(), pki.client) == "OK");
  REQUIRE(PlanStatus(server.url(), other_client) == "DENIED");
  const TlsFiles nobody = pki.ca.Issue({"stranger", {}});

  // Without the list every certificate would be allowed, so the reload fails.
  WriteBytes(conf, Lines(pki.server) + "[[database]]\nname = \"db\"\n" +
                       "directory = \"" + (dir / "source") + "\"\n");
  reload("--allow db: expected at least one SUBJECT, as before");
  REQUIRE(PlanStatus(server.url(), nobody) == "DENIED");
  write(pki.server, "*");
  server.process().Signal(SIGHUP);
  AwaitStatus(server.url(), nobody, "OK");
  write(pki.server, "target");
  server.process().Signal(SIGHUP);
  AwaitStatus(server.url(), nobody, "DENIED");

  TlsFiles missing = other_server;
  missing.key = dir / "missing.key";
  write(missing, "nobody");
  reload("nothing was changed");
  REQUIRE(PlanStatus(server.url(), pki.client) == "OK");

  write(other_server, "target");
  server.process().Signal(SIGHUP);
  AwaitStatus(server.url(), other_client, "OK");
  REQUIRE(PlanStatus(server.url(), pki.client) == "DENIED");
}

}  // namespace
}  // namespace sstferry::tls_reload_test
