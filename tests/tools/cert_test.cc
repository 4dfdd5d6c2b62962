// sstferry cert, and --tls, which reads the files that cert makes.
#include <filesystem>

#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/serve_process.h"
#include "tools/sstferry/command_arguments.h"

namespace sstferry::cert_test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

TEST_CASE("Two hosts with certificates from cert need only --tls for a pull",
          "[wire][tls]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  const std::string pki = dir / "pki";
  for (const Words& words : std::vector<Words>{
           {"cert", "init", pki},
           {"cert", "issue", pki, "127.0.0.1", "--also", "localhost"},
           {"cert", "issue", pki, "db2", "--days", "30"}}) {
    Process made(Sstferry(words));
    const int code = made.Wait();
    INFO(made.err());
    REQUIRE(code == 0);
    REQUIRE(made.out().find("next: ") != std::string::npos);
  }
  ServeProcess server({"db=" + (dir / "source"), "--tls", pki + "/127.0.0.1",
                       "--allow", "db=db2"});
  Process pull(
      Sstferry({"pull", server.url(), dir / "copy", "--tls", pki + "/db2"}));
  const int code = pull.Wait();
  INFO(pull.err());
  REQUIRE(code == 0);
  REQUIRE(EntriesOf(dir / "copy") == EntriesOf(dir / "source"));
  // Every list names the certificate to which nothing is served.
  for (const Words& words : std::vector<Words>{
           {"ls", server.list_url()},
           {"pull", server.list_url(), dir / "all", "--all"}}) {
    Words denied = words;
    denied.insert(denied.end(), {"--tls", pki + "/127.0.0.1"});
    Process process(Sstferry(denied));
    REQUIRE(process.Wait() == 1);
    INFO(process.err());
    REQUIRE(process.err().find("DENIED: ") != std::string::npos);
    REQUIRE(process.err().find(": serves nothing to CN=127.0.0.1 (serve "
                               "--allow)") != std::string::npos);
    REQUIRE_FALSE(fs::exists(dir / "all"));
  }
  // A certificate for the same name from another CA is refused.
  REQUIRE_OK(MakeCertificateAuthority(dir / "other"));
  TlsFiles files;
  uint64_t until = 0;
  REQUIRE_OK(IssueCertificate(dir / "other", {"db2"}, 10, &files, &until));
  Process stranger(Sstferry({"pull", server.url(), dir / "copy2", "--tls",
                             dir / "other/db2", "--timeout", "60s"}));
  REQUIRE(stranger.Wait() == 1);
  INFO(stranger.err());
  REQUIRE(stranger.err().find("found issuer CN=sstferry CA of ") !=
          std::string::npos);
  REQUIRE_FALSE(fs::exists(dir / "copy2"));
}

TEST_CASE("cert names the argument that it cannot parse", "[tools]") {
  const std::vector<std::pair<Words, std::string>> rows = {
      {{}, "action: expected init or issue"},
      {{"make", "pki"}, "action: expected init or issue"},
      {{"init"}, "directory: expected"},
      {{"init", "pki", "db1"}, "host: expected none"},
      {{"issue", "pki"}, "host: expected the DNS name"},
      {{"issue", "pki", "db1", "--days", "0"}, "--days: "}};
  for (const auto& [words, expected] : rows) {
    CertArguments out;
    const rocksdb::Status status = ParseCert(words, &out);
    INFO(expected);
    REQUIRE(status.IsInvalidArgument());
    REQUIRE(std::string(status.getState()).find(expected) == 0);
  }
}

TEST_CASE(
    "Option --tls sets three files, and each can be set on its own",
    "[tools]") {
  PullArguments pull;
  REQUIRE_OK(ParsePull(
      PullMode::kPull,
      {"sst://h/n", "t", "--tls", "/pki/db1", "--tls-ca", "/etc/ca.pem"},
      &pull));
  REQUIRE(pull.options.tls.cert == "/pki/db1/cert.pem");
  REQUIRE(pull.options.tls.key == "/pki/db1/key.pem");
  REQUIRE(pull.options.tls.ca == "/etc/ca.pem");
}

}  // namespace
}  // namespace sstferry::cert_test
