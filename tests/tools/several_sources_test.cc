// A pull from several sources, with real processes.
#include <signal.h>

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/certificates.h"
#include "tests/support/process.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/serve_process.h"

namespace sstferry {
namespace {

using Words = std::vector<std::string>;

Words operator+(Words left, const Words& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

Words Tls(const TlsFiles& files) {
  return {"--tls-cert", files.cert, "--tls-key", files.key,
          "--tls-ca",   files.ca};
}

Words Serve(const std::string& directory) {
  return Words{"--db", "db=" + directory} + Tls(GoodPki().server);
}

// What the tool prints; it must end with this code.
std::string Run(const Words& words, int code) {
  Process process(Sstferry(words));
  const int ended = process.Wait();
  INFO(process.out() << process.err());
  REQUIRE(ended == code);
  return code == 2 ? process.err() : process.out();
}

TEST_CASE("The binary clones from two servers over TLS, also when one is killed",
          "[tools][sources]") {
  const ScratchDir dir;
  MakeSampleDatabase(dir / "a");
  ServeProcess a(Serve(dir / "a"));
  const Words clone = Words{"--method", "clone", "--log-level", "warning"} +
                      Tls(GoodPki().client);
  Run(Words{"pull", a.url(), dir / "b"} + clone, 0);
  ServeProcess b(Serve(dir / "b"));
  const std::string both = a.url() + "," + b.url();
  const std::string report = Run(Words{"pull", both, dir / "c"} + clone, 0);
  INFO(report);
  REQUIRE(report.find("\nfrom: " + a.url() + " ") != std::string::npos);
  REQUIRE(report.find(", " + b.url() + " ") != std::string::npos);
  REQUIRE(EntriesOf(dir / "c") == EntriesOf(dir / "a"));
  a.process().Signal(SIGKILL);
  REQUIRE(a.process().Wait() == 128 + SIGKILL);
  const auto json = nlohmann::json::parse(
      Run(Words{"pull", both, dir / "d", "--json"} + clone, 0));
  REQUIRE(json["source"] == b.url());
  REQUIRE(json["sources"][0]["url"] == a.url());
  REQUIRE(json["sources"][0]["state"] == "unreachable");
  REQUIRE(json["sources"][1]["state"] == "used");
  REQUIRE(json["sources"][1]["bytes"] == json["sst_bytes"]);
  REQUIRE(EntriesOf(dir / "d") == EntriesOf(dir / "a"));
}

TEST_CASE("The binary refuses lists of sources that it cannot use",
          "[tools][sources]") {
  const ScratchDir dir;
  for (const std::string text :
       {"sst://a/db,sst://a:7420/db", "sst://a/db,sst://b", "sst://a/db,/db"}) {
    const std::string said = Run({"pull", text, dir / "target"}, 2);
    INFO(said);
    REQUIRE(said.find("expected") != std::string::npos);
  }
  for (const Words& words :
       {Words{"plan", "sst://a/db,sst://b/db"},
        Words{"verify", "sst://a/db,sst://b/db", dir / "target"},
        Words{"status", "sst://a/db,sst://b/db"}}) {
    REQUIRE(Run(words, 2).find("pull alone takes a list") !=
            std::string::npos);
  }
}

}  // namespace
}  // namespace sstferry
