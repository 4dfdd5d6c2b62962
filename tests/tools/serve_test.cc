// Checks that sstferry serve makes before it listens: real processes.
#include <signal.h>

#include <filesystem>

#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/serve_process.h"

namespace sstferry::serve_test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

Words Serve(const std::string& directory, const Words& more = {}) {
  Words words{"serve", "--listen", "127.0.0.1:0", "--db", "db=" + directory};
  words.insert(words.end(), more.begin(), more.end());
  return Sstferry(words);
}

TEST_CASE("serve fails before it listens if it cannot serve a database",
          "[tools][serve]") {
  const ScratchDir dir;
  std::string says;
  std::string status = "SOURCE_ERROR";
  Words more;
  SECTION("that does not exist") {
    says = "cannot open database " + (dir / "db") + ": No such file";
  }
  SECTION("that is not a database") {
    fs::create_directory(dir / "db");
    says = "this is not a RocksDB database";
  }
  SECTION("whose MANIFEST is missing") {
    MakeSampleDatabase(dir / "db");
    WriteBytes(dir / "db/CURRENT", "MANIFEST-000999\n");
    says = "MANIFEST-000999 is missing";
  }
  SECTION("whose CURRENT is damaged") {
    MakeSampleDatabase(dir / "db");
    WriteBytes(dir / "db/CURRENT", "rubbish");
    says = "expected the name of a MANIFEST";
    status = "CORRUPT";
  }
  SECTION("whose snapshot directory cannot be made") {
    MakeSampleDatabase(dir / "db");
    WriteBytes(dir / "file", "");
    more = {"--snapshot-dir", dir / "file/links"};
    says = "expected a writable directory on the source's file system";
  }
  Process process(Serve(dir / "db", more));
  REQUIRE(process.Wait() == 1);
  INFO(process.err());
  REQUIRE(process.out().empty());
  REQUIRE(process.err().find(status + ": --db db=" + (dir / "db") +
                             " (--allow-missing starts without it): ") !=
          std::string::npos);
  REQUIRE(process.err().find(says) != std::string::npos);
}

TEST_CASE("serve logs each database with its size and sequence",
          "[tools][serve]") {
  const ScratchDir dir;
  MakeSampleDatabase(dir / "db");
  Process process(Serve(dir / "db"));
  REQUIRE(process.WaitForOut("listening on "));
  process.Signal(SIGTERM);
  REQUIRE(process.Wait() == 0);
  INFO(process.err());
  REQUIRE(process.err().find("serves db from " + (dir / "db") +
                             ": 1 column family, 4 files, 2.") !=
          std::string::npos);
  REQUIRE(process.err().find(" MB, sequence 2000 as of the last flush") !=
          std::string::npos);
}

TEST_CASE("serve --allow-missing serves a database once it exists",
          "[tools][serve]") {
  const ScratchDir dir;
  ServeProcess server({"--db", "db=" + (dir / "db"), "--allow-missing"});
  const Words pull =
      Sstferry({"pull", server.url(), dir / "target", "--verify"});
  Process early(pull);
  REQUIRE(early.Wait() == 1);
  REQUIRE(early.err().find("SOURCE_ERROR") != std::string::npos);
  MakeSampleDatabase(dir / "db");
  Process late(pull);
  REQUIRE(late.Wait() == 0);
  server.process().Signal(SIGTERM);
  REQUIRE(server.process().Wait() == 0);
  REQUIRE(server.process().err().find("cannot be served now: cannot open "
                                      "database") != std::string::npos);
}

}  // namespace
}  // namespace sstferry::serve_test
