// The real binary: the method that `pull` chooses, and what `plan` shows.
#include <filesystem>

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/edited_options.h"
#include "tests/support/named_comparator.h"
#include "tests/support/process.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/serve_process.h"
#include "tests/support/test_db.h"

namespace sstferry::method_test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

void MakeOddDatabase(const std::string& path) {
  static const test::NamedComparator order("an application's own order");
  test::Families families = test::OneFamily(test::Quiet());
  families[0].options.comparator = &order;
  test::OpenDb db(path, families);
  db.Put("key", "value");
  db.Flush();
}

nlohmann::json Json(const Words& words, int code) {
  Process process(Sstferry(words));
  const int ended = process.Wait();
  INFO(process.err());
  REQUIRE(ended == code);
  return nlohmann::json::parse(process.out());
}

TEST_CASE("pull clones a database that chunks cannot represent",
          "[tools][method]") {
  const ScratchDir dir;
  MakeOddDatabase(dir / "db");
  const auto cloned = Json({"pull", dir / "db", dir / "target", "--json"}, 0);
  REQUIRE(cloned["method"] == "clone");
  REQUIRE(cloned["files_cloned"] > 0);
  REQUIRE(cloned["files_reused"] == 0);
  REQUIRE(cloned["bytes_reused"] == 0);
  REQUIRE(cloned["sst_bytes"] > 0);
  REQUIRE(cloned["wire_bytes"] >= cloned["sst_bytes"]);
  REQUIRE(cloned["method_reason"].get<std::string>().find("as they are") !=
          std::string::npos);
  for (const Words& more :
       {Words{"--begin", "a"}, Words{"--method", "ingest"}}) {
    Words words = {"pull", dir / "db", dir / "other", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const auto refused = Json(words, 1);
    REQUIRE(refused["status"] == "REFUSED");
    REQUIRE(refused["error"]["message"].get<std::string>().find(
                "with --method clone") != std::string::npos);
  }
}

TEST_CASE("ingest refuses WALs that only their application can replay",
          "[tools][method]") {
  const ScratchDir dir;
  const bool is_filter = GENERATE(true, false);
  const std::string name = is_filter
                               ? "wal_filter, 'a filter of the application'"
                               : "'default' has inplace_update_support";
  test::Families families = test::OneFamily(test::Quiet());
  families[0].options.inplace_update_support = !is_filter;
  rocksdb::DBOptions options;
  options.allow_concurrent_memtable_write = false;
  const auto mark = [&] {
    if (is_filter) {
      test::EditOptions(dir / "db", "wal_filter=nullptr",
                        "wal_filter=a filter of the application");
    }
  };
  {
    test::OpenDb db(dir / "db", families, options);
    db.Put("key", "value");
  }
  mark();
  const auto cloned = Json({"pull", dir / "db", dir / "clone", "--json"}, 0);
  REQUIRE(cloned["method"] == "clone");
  const auto refused = Json({"pull", dir / "db", dir / "ingested", "--method",
                             "ingest", "--json"}, 1);
  INFO(refused.dump());
  REQUIRE(refused["status"] == "REFUSED");
  REQUIRE(refused["error"]["message"].get<std::string>().find(name) !=
          std::string::npos);
  {
    test::OpenDb db(dir / "db", families, options);
    db.Flush();
  }
  mark();
  Json({"pull", dir / "db", dir / "ingested", "--method", "ingest", "--json"},
       0);
}

TEST_CASE("plan shows the bytes of both methods and the one that pull takes",
          "[tools][method]") {
  const ScratchDir dir;
  {
    test::OpenDb db(dir / "db", test::OneFamily(test::Quiet()));
    db.Put("key", "value");
    db.Flush();
  }
  Process process(Sstferry({"plan", dir / "db"}));
  REQUIRE(process.Wait() == 0);
  INFO(process.out());
  for (const char* expected :
       {"METHOD", "BYTES", "\nclone ", "\ningest ",
        "\nmethod: clone (auto: the files of a whole database "}) {
    REQUIRE(process.out().find(expected) != std::string::npos);
  }
  const auto plan = Json({"plan", dir / "db", "--json"}, 0);
  REQUIRE(plan["method"] == "clone");
  REQUIRE(plan["methods"][0]["bytes"] > 0);
  REQUIRE(plan["methods"][1]["bytes"] > 0);
}

TEST_CASE("serve --once serves one pull even if the source changes its method",
          "[tools][method][serve]") {
  const ScratchDir dir;
  {
    test::OpenDb db(dir / "db", test::OneFamily(test::Quiet()));
    db.Put("key", "value");
  }
  fs::create_directory(dir / "db" + "/titandb");
  ServeProcess server({"--db", "db=" + (dir / "db"), "--once"});
  const auto moved = Json({"pull", server.url(), dir / "target", "--json"}, 0);
  REQUIRE(moved["method"] == "ingest");
  REQUIRE(server.process().Wait() == 0);
}

}  // namespace
}  // namespace sstferry::method_test
