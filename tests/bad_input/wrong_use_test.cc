// Wrong uses of the tool, and what it says of each: what is wrong, and what to
// do instead. One row each, as an operator meets it.
#include <filesystem>

#include "rocksdb/db.h"
#include "tests/support/catch.h"
#include "tests/support/certificates.h"
#include "tests/support/process.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/serve_process.h"
#include "tests/support/test_db.h"

namespace sstferry {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

// Returns what the tool writes to standard error.
std::string Said(const Words& words, int code) {
  Process process(Sstferry(words));
  const int found = process.Wait();
  INFO(process.err());
  REQUIRE(found == code);
  return process.err();
}

void RequireSays(const Words& words, int code, const std::string& sentence) {
  const std::string said = Said(words, code);
  INFO(said);
  REQUIRE(said.find(sentence) != std::string::npos);
}

// A database with a name for each wrong use.
struct Place {
  Place() {
    MakeSampleDatabase(dir / "source", Small());
    fs::create_directory(dir / "letters");
    WriteBytes(dir / "letters/to_mother", "Dear mother");
    fs::create_directory(dir / "leveldb");
    WriteBytes(dir / "leveldb/CURRENT", "MANIFEST-000002\n");
    WriteBytes(dir / "leveldb/MANIFEST-000002", "");
    WriteBytes(dir / "leveldb/000005.ldb", "");
    WriteBytes(dir / "file", "no database");
  }
  static SampleShape Small() {
    SampleShape shape;
    shape.entries = 100;
    return shape;
  }
  ScratchDir dir;
};

TEST_CASE("A wrong source is named for what it is", "[bad_input][words]") {
  Place place;
  const std::string to = place.dir / "copy";
  RequireSays({"pull", place.dir / "missing", to}, 1, "No such file");
  RequireSays({"pull", place.dir / "letters", to}, 1,
              "this is not a RocksDB database");
  RequireSays({"pull", place.dir / "file", to}, 1, "Not a directory");
  RequireSays({"pull", place.dir / "leveldb", to}, 1, "is a LevelDB database");
  RequireSays({"serve", place.dir / "leveldb"}, 1, "is a LevelDB database");
  RequireSays({"pull", "https://db1/users", to}, 2,
              "sst://HOST[:PORT]/NAME or unix:/PATH:NAME, found");
  REQUIRE_FALSE(fs::exists(to));
}

TEST_CASE("A wrong target is left alone, and the message says what to do",
          "[bad_input][words]") {
  Place place;
  const std::string from = place.dir / "source";
  RequireSays({"pull", from, place.dir / "file"}, 1,
              "expected a directory or nothing, found a file");
  RequireSays({"pull", from, place.dir / "letters"}, 1,
              "name another directory");
  RequireSays({"pull", from, place.dir / "no/parent"}, 1, "does not exist");
  RequireSays({"pull", from, from}, 1, "choose another TARGET_DIR");
  RequireSays({"pull", from, "sst://db2/users"}, 2,
              "pull runs at the target, and serve at the source");
  const std::string copy = place.dir / "copy";
  REQUIRE(Said({"pull", from, copy}, 0).find("REFUSED") == std::string::npos);
  RequireSays({"pull", from, copy}, 1,
              "run: sstferry refresh " + from + " " + copy);
  MakeSampleDatabase(place.dir / "mine", Place::Small());
  RequireSays({"pull", from, place.dir / "mine"}, 1, "sstferry swap --adopt");
  RequireSays({"refresh", from, place.dir / "mine"}, 1, "--adopt");
}

TEST_CASE("An open target is named with the process that has it open",
          "[bad_input][words]") {
  Place place;
  const std::string from = place.dir / "source";
  const std::string copy = place.dir / "copy";
  REQUIRE(Said({"pull", from, copy}, 0).find("REFUSED") == std::string::npos);
  test::OpenDb application(copy, test::OneFamily(test::Quiet()));
  const std::string process = "process " + std::to_string(getpid()) + " (";
  const std::string refused = Said({"refresh", from, copy}, 5);
  INFO(refused);
  REQUIRE(refused.find(process) != std::string::npos);
  REQUIRE(refused.find("sstferry swap") != std::string::npos);
  test::OpenDb(from, test::OneFamily(test::Quiet())).Put("a new", "key");
  const std::string busy = Said({"swap", from, copy, "--method", "ingest"}, 5);
  INFO(busy);
  REQUIRE(busy.find(process) != std::string::npos);
  REQUIRE(busy.find("--before-swap must stop") != std::string::npos);
}

TEST_CASE("A name that is not served gets the nearest, and a port its listener",
          "[bad_input][words]") {
  Place place;
  const ServeProcess server({"users=" + (place.dir / "source")});
  const std::string url = server.list_url();
  const std::string to = place.dir / "copy";
  RequireSays({"pull", url + "/user", to}, 1, "did you mean users?");
  RequireSays({"pull", url + "/something", to}, 1, "sstferry ls");
  RequireSays({"pull", url, to}, 2, "sstferry plan lists the names");
  RequireSays({"pull", "sst://127.0.0.1:1/users", to, "--timeout", "1s"}, 4,
              "is `sstferry serve` running there?");
}

TEST_CASE("Wrong words of a command line get the right ones",
          "[bad_input][words]") {
  struct Row {
    Words words;
    const char* sentence;
  };
  const std::vector<Row> rows = {
      {{"pulll", "s", "t"}, "did you mean pull?"},
      {{"pull", "s", "t", "--methd", "clone"}, "did you mean --method?"},
      {{"pull", "s", "t", "--method", "copy"}, "auto, ingest or clone"},
      {{"pull", "s", "t", "--compare", "digest"}, "expected sstferry refresh"},
      {{"refresh", "s", "t", "--before-swap", "x"}, "expected sstferry swap"},
      {{"swap", "s", "t", "--drop-missing"}, "expected sstferry refresh"},
      {{"plan", "s", "t", "--after-swap", "x"}, "expected sstferry swap"},
      {{"serve", "--db", "/d", "--listen", "0.0.0.0:1"}, "--insecure allows"},
      {{"pull", "s", "t", "--lanes", "0"}, "from 1 to 64"},
      {{"pull", "s", "t", "--max-rate", "fast"}, "bytes such as 64M"},
      {{"pull", "s", "t", "--timeout", "10"}, "a duration such as 90s"},
      {{"pull", "s"}, "expected a directory TARGET_DIR"},
      {{"cert", "make", "pki"}, "init or issue"},
  };
  for (const Row& row : rows) {
    RequireSays(row.words, 2, row.sentence);
  }
}

TEST_CASE("Wrong TLS files are told apart", "[bad_input][words][tls]") {
  Place place;
  const TlsFiles& files = GoodPki().server;
  const std::string db = "db=" + (place.dir / "source");
  RequireSays({"serve", db, "--tls-cert", files.key, "--tls-key", files.cert,
               "--tls-ca", files.ca},
              1, "are --tls-cert and --tls-key exchanged?");
  RequireSays({"serve", db, "--tls-cert", files.cert}, 2,
              "expected all three or none");
  RequireSays({"serve", db, "--tls", place.dir / "letters"}, 1, "cert.pem");
  RequireSays({"cert", "issue", place.dir / "letters", "db1"}, 1,
              "sstferry cert init makes a CA");
}

}  // namespace
}  // namespace sstferry
