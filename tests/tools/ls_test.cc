// sstferry ls as an operator runs it: real processes.
#include <utime.h>

#include <ctime>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/serve_process.h"
#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/operation_runner.h"

namespace sstferry::ls_test {

using nlohmann::json;

namespace {

// Sets the file times of the directory to `seconds` before now.
void MakeOld(const std::string& directory, time_t seconds) {
  const utimbuf times = {std::time(nullptr) - seconds,
                         std::time(nullptr) - seconds};
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    REQUIRE(utime(entry.path().c_str(), &times) == 0);
  }
}

json Ls(const std::string& url) {
  Process ls(Sstferry({"ls", url, "--json"}));
  REQUIRE(ls.Wait() == 0);
  return json::parse(ls.out(), nullptr, false);
}

}  // namespace

TEST_CASE("ls lists what a server serves with size, sequence and age",
          "[tools][ls]") {
  const ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  MakeOld(dir / "source", 7200);
  ServeProcess server({"--db", "db=" + (dir / "source"), "--db",
                       "gone=" + (dir / "gone"), "--allow-missing"});
  const json all = Ls(server.list_url());
  INFO(all.dump(2));
  REQUIRE(all["command"] == "ls");
  REQUIRE(all["complete"] == true);
  REQUIRE(all["databases"].size() == 2);
  const json& database = all["databases"][0];
  REQUIRE(database["name"] == "db");
  REQUIRE(database["bytes"] > 100'000);
  REQUIRE(database["files"] > 0);
  REQUIRE(database["snapshot_sequence"] > 0);
  REQUIRE(database["age_seconds"] >= 7200);
  REQUIRE(database["age_seconds"] < 9000);
  REQUIRE(database["problem"].is_null());
  REQUIRE(all["databases"][1]["name"] == "gone");
  REQUIRE(std::string(all["databases"][1]["problem"]).find("cannot open") !=
          std::string::npos);
  REQUIRE(Ls(server.url())["databases"].size() == 1);

  Process text(Sstferry({"ls", server.list_url()}));
  REQUIRE(text.Wait() == 0);
  INFO(text.out());
  REQUIRE(text.out().find(" serves 2 databases\nNAME  SIZE") !=
          std::string::npos);
  REQUIRE(text.out().find("\ndb    ") != std::string::npos);
  REQUIRE(text.out().find("2:00:") != std::string::npos);
  REQUIRE(text.out().find("\ngone  -") != std::string::npos);
  REQUIRE(text.out().find("\ngone: cannot open database") !=
          std::string::npos);
}

TEST_CASE("ls says that a source may have more databases", "[tools][ls]") {
  StatusReport report;
  REQUIRE(LsText("db1", false, report).find("there may be more") !=
          std::string::npos);
  REQUIRE(json::parse(LsToJson("db1", report))["complete"] == false);
  report.served_all = true;
  REQUIRE(LsText("db1", false, report) == "db1 serves 0 databases\n");
}

TEST_CASE("ls reports a name that is not served, and an archive",
          "[tools][ls]") {
  const ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  ServeProcess server({"--db", "db=" + (dir / "source")});
  Process other(Sstferry({"ls", server.list_url() + "/other"}));
  REQUIRE(other.Wait() == 1);
  REQUIRE(other.err().find("other") != std::string::npos);
  StatusArguments parsed;
  const rocksdb::Status status = ParseLs({"s3://bucket/orders"}, &parsed);
  REQUIRE(status.IsInvalidArgument());
  REQUIRE(std::string(status.getState()).find("sst://HOST") !=
          std::string::npos);
}

TEST_CASE("ls of a directory shows the database in it, or those below it",
          "[tools][ls]") {
  const ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  for (const std::string end : {"", "/", "/."}) {
    Process list(Sstferry({"ls", dir / "source" + end}));
    REQUIRE(list.Wait() == 0);
    INFO(list.out());
    REQUIRE(list.out().find(": 1 database\nNAME") != std::string::npos);
    REQUIRE(list.out().find("\nsource ") != std::string::npos);
    REQUIRE(list.out().ends_with(
        "\nsize and sequence: as of the last flush\n"));
  }
  std::filesystem::create_directories(dir / "top/deep");
  std::filesystem::create_directories(dir / "top/empty");
  MakeSampleDatabase(dir / "top/a");
  MakeSampleDatabase(dir / "top/deep/b");
  const json below = Ls(dir / "top");
  INFO(below.dump(2));
  REQUIRE(below["databases"].size() == 2);
  REQUIRE(below["databases"][0]["name"] == "a");
  REQUIRE(below["databases"][0]["bytes"] > 100'000);
  REQUIRE(below["databases"][1]["name"] == "deep/b");
  for (const std::string none : {"top/empty", "none"}) {
    Process refused(Sstferry({"ls", dir / none}));
    REQUIRE(refused.Wait() == 1);
    INFO(refused.err());
    REQUIRE(refused.err().find(dir / none) != std::string::npos);
    REQUIRE(refused.out().empty());
  }
}

}  // namespace sstferry::ls_test
