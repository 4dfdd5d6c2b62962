// Tests that the harness finds each chunk of a pull on both sides.
#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry {
namespace {

TEST_CASE("The time from a finished chunk to its ingestion is measured for all",
          "[benchmarks]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  std::vector<std::string> words{
      "/usr/bin/env", "python3",
      std::string(SSTFERRY_SOURCE_DIR) + "/benchmarks/harness/chunk_latency.py",
      dir / "target"};
  for (const std::string& word :
       Sstferry({"pull", dir / "source", dir / "target", "--method", "ingest",
                 "--chunk-bytes", "64Ki"})) {
    words.push_back(word);
  }
  Process process(words);
  const int code = process.Wait(std::chrono::seconds(120));
  INFO(process.out() << process.err());
  REQUIRE(code == 0);
  const nlohmann::json found = nlohmann::json::parse(process.out());
  REQUIRE(found.at("chunks") > 20);
  REQUIRE(found.at("finished") == found.at("chunks"));
  REQUIRE(found.at("measured") == found.at("chunks"));
  REQUIRE(found.at("p50_s") >= 0);
  REQUIRE(found.at("p50_s") <= found.at("p95_s"));
  REQUIRE(found.at("p95_s") <= found.at("p99_s"));
  REQUIRE(found.at("p99_s") <= found.at("most_s"));
  REQUIRE(found.at("most_s") < 60);
}

}  // namespace
}  // namespace sstferry
