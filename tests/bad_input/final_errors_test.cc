// Tests errors that a retry cannot solve. The command ends at once with a
// reason and an exit code, before data moves, even if it usually retries.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "rocksdb/db.h"
#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/test_db.h"

namespace sstferry::final_errors_test {
namespace {

namespace fs = std::filesystem;

struct Ended {
  int code = -1;
  std::string out;
  std::string err;
};

Ended Run(const std::vector<std::string>& arguments) {
  Process process(Sstferry(arguments));
  Ended ended;
  ended.code = process.Wait();
  ended.out = process.out();
  ended.err = process.err();
  return ended;
}

void RequireSays(const Ended& ended, int code, const std::string& text) {
  INFO(ended.err);
  REQUIRE(ended.code == code);
  REQUIRE(ended.err.find(text) != std::string::npos);
}

TEST_CASE("A follower without any data of its source ends if it cannot start",
          "[bad_input][follow]") {
  const ScratchDir dir;
  fs::create_directory(dir / "empty");
  RequireSays(Run({"follow", dir / "nowhere", dir / "standby"}), 1,
              "SOURCE_ERROR: ");
  RequireSays(Run({"follow", dir / "empty", dir / "standby"}), 1,
              "SOURCE_ERROR: ");
  REQUIRE_FALSE(fs::exists(dir / "standby"));
}

TEST_CASE("A swap of an open database reports BUSY before it moves data",
          "[bad_input][swap]") {
  const ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  const std::string method = GENERATE("ingest", "clone");
  REQUIRE(Run({"pull", dir / "source", dir / "target", "--method", method})
              .code == 0);
  {
    const test::OpenDb source(rocksdb::Options(), dir / "source");
    REQUIRE_OK(source->Put(rocksdb::WriteOptions(), "another", "key"));
  }
  {
    const test::OpenDb open(rocksdb::Options(), dir / "target");
    const Ended ended = Run({"swap", dir / "source", dir / "target", "--json"});
    INFO(ended.out << ended.err);
    REQUIRE(ended.code == 5);
    const auto json = nlohmann::json::parse(ended.out);
    REQUIRE(json["status"] == "BUSY");
    REQUIRE(json["chunks"] == 0);
  }
  REQUIRE(Run({"swap", dir / "source", dir / "target"}).code == 0);
  REQUIRE(EntriesOf(dir / "source") == EntriesOf(dir / "target"));
}

TEST_CASE("A pull into a directory inside a database or replica is refused",
          "[bad_input][target]") {
  const ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  MakeSampleDatabase(dir / "database");
  REQUIRE(Run({"pull", dir / "source", dir / "replica"}).code == 0);
  for (const std::string outer : {"replica", "database"}) {
    for (const std::string command : {"pull", "follow"}) {
      RequireSays(Run({command, dir / "source", dir / (outer + "/inner")}), 1,
                  "expected a directory outside of databases, found it inside "
                  "the database " + (dir / outer));
      REQUIRE_FALSE(fs::exists(dir / (outer + "/inner")));
      REQUIRE_FALSE(fs::exists(dir / (outer + "/inner.sstferry")));
    }
  }
}

TEST_CASE("An empty OPTIONS file in a clone is no damage if the source has it",
          "[bad_input][target]") {
  const ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  WriteBytes(dir / "source/OPTIONS-999999", "");
  REQUIRE(Run({"pull", dir / "source", dir / "target", "--method", "clone"})
              .code == 0);
  const Ended ended = Run(
      {"refresh", dir / "source", dir / "target", "--method", "ingest"});
  RequireSays(ended, 1, "REFUSED: ");
  REQUIRE(ended.err.find("its newest OPTIONS file is empty") !=
          std::string::npos);
  REQUIRE(ended.err.find("damaged") == std::string::npos);
  REQUIRE_FALSE(fs::exists(dir / "target/sstferry.health"));
  REQUIRE(Run({"swap", dir / "source", dir / "target", "--method", "clone"})
              .code == 0);
}

TEST_CASE("A rate without a unit that is too small is refused, and a unit is "
          "suggested",
          "[bad_input][cli]") {
  for (const std::string rate : {"10", "63999"}) {
    RequireSays(Run({"pull", "source", "target", "--max-rate", rate}), 2,
                "did you mean " + rate + "M?");
  }
  RequireSays(Run({"pull", "nowhere", "target", "--max-rate", "64000"}), 1,
              "SOURCE_ERROR");
  RequireSays(Run({"pull", "nowhere", "target", "--max-rate", "10K"}), 1,
              "SOURCE_ERROR");
}

}  // namespace
}  // namespace sstferry::final_errors_test
