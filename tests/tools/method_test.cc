// The real binary: which method `pull` takes, and what `plan` says about both.
#include <nlohmann/json.hpp>

#include "rocksdb/utilities/transaction_db.h"
#include "tests/support/catch.h"
#include "tests/support/edited_options.h"
#include "tests/support/named_comparator.h"
#include "tests/support/process.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/serve_process.h"
#include "tests/support/test_db.h"

namespace sstferry::method_test {
namespace {

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

TEST_CASE("pull clones what chunks cannot hold, and says why",
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
  REQUIRE(cloned["method_reason"].get<std::string>().find("own order") !=
          std::string::npos);
  for (const Words& more :
       {Words{"--begin", "a"}, Words{"--method", "ingest"}}) {
    Words words = {"pull", dir / "db", dir / "other", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const auto refused = Json(words, 1);
    REQUIRE(refused["status"] == "REFUSED");
    REQUIRE(refused["error"]["message"].get<std::string>().find(
                "cannot clone instead") != std::string::npos);
  }
}

TEST_CASE("WALs that only their application replays are not read as entries",
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

TEST_CASE("plan says that chunks are refused and that the pull clones",
          "[tools][method]") {
  const ScratchDir dir;
  MakeOddDatabase(dir / "db");
  Process process(Sstferry({"plan", dir / "db"}));
  REQUIRE(process.Wait() == 0);
  INFO(process.out());
  for (const char* expected :
       {"METHOD", "10 Gbit/s", "ingest: not possible: ",
        "\nmethod: clone (auto: "}) {
    REQUIRE(process.out().find(expected) != std::string::npos);
  }
  const auto plan = Json({"plan", dir / "db", "--json"}, 0);
  REQUIRE(plan["method"] == "clone");
  REQUIRE(plan["methods"][0]["possible"] == false);
  REQUIRE(plan["methods"][1]["bytes"] > 0);
}

TEST_CASE("serve --once waits for the clone that takes the place of chunks",
          "[tools][method][serve]") {
  const ScratchDir dir;
  rocksdb::Options options{rocksdb::DBOptions(), test::Quiet()};
  options.create_if_missing = true;
  rocksdb::TransactionDB* opened = nullptr;
  REQUIRE_OK(rocksdb::TransactionDB::Open(
      options, rocksdb::TransactionDBOptions(), dir / "db", &opened));
  const std::unique_ptr<rocksdb::TransactionDB> db(opened);
  const std::unique_ptr<rocksdb::Transaction> prepared(
      db->BeginTransaction({}));
  REQUIRE_OK(prepared->SetName("transfer of money"));
  REQUIRE_OK(prepared->Put("prepared", "value"));
  REQUIRE_OK(prepared->Prepare());
  REQUIRE_OK(db->FlushWAL(true));
  ServeProcess server({"--db", "db=" + (dir / "db"), "--once"});
  const auto cloned = Json({"pull", server.url(), dir / "target", "--json"}, 0);
  REQUIRE(cloned["method"] == "clone");
  REQUIRE(server.process().Wait() == 0);
  REQUIRE_OK(prepared->Rollback());
}

}  // namespace
}  // namespace sstferry::method_test
