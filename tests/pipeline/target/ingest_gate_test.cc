// Ingestion waits while the database has too many pending compactions.
#include "pipeline/refresh/ingest_gate.h"

#include <chrono>

#include "tests/support/catch.h"
#include "tests/support/test_db.h"

namespace sstferry::test::ingest_gate_test {
namespace {

TEST_CASE("The gate opens when compactions have caught up", "[target][gate]") {
  StopSignal stop;
  int asked = 0;
  IngestGate gate([&asked] { return ++asked < 4; }, 1, &stop);
  REQUIRE_OK(gate.Pass(1'000'000));  // would wait for at most eleven days
  REQUIRE(asked == 4);
}

TEST_CASE("The gate does not make an ingestion slower than the minimum rate",
          "[target][gate]") {
  StopSignal stop;
  IngestGate gate([] { return true; }, 1'000'000, &stop);
  const std::chrono::steady_clock::time_point begin =
      std::chrono::steady_clock::now();
  REQUIRE_OK(gate.Pass(50'000));
  REQUIRE(std::chrono::steady_clock::now() - begin >=
          std::chrono::milliseconds(50));
  bool is_asked = false;
  IngestGate none([&is_asked] { return is_asked = true; }, 0, &stop);
  REQUIRE_OK(none.Pass(1'000'000'000));
  REQUIRE_FALSE(is_asked);
}

TEST_CASE("A request to stop opens the gate with an error", "[target][gate]") {
  StopSignal stop;
  IngestGate gate([&stop] { return stop.Stop(), true; }, 1, &stop);
  REQUIRE(EndStateOf(gate.Pass(1'000'000)) == EndState::kCancelled);
  REQUIRE(EndStateOf(gate.Pass(1)) == EndState::kCancelled);
}

TEST_CASE("IsBehind is true for a database with too many files in level 0",
          "[target][gate]") {
  const ScratchDir dir;
  rocksdb::ColumnFamilyOptions options;
  options.level0_file_num_compaction_trigger = 100;
  options.level0_slowdown_writes_trigger = 100;
  OpenDb db(dir / "db", OneFamily(options));
  const std::vector<FamilyHandle> families = {{"default", db.cf("default")}};
  for (int i = 0; i < 3; ++i) {
    db.Put("key", "value");
    db.Flush();
  }
  REQUIRE_FALSE(IsBehind(db.get(), families));
  REQUIRE_OK(db->PauseBackgroundWork());
  REQUIRE_OK(db->SetOptions(db.cf("default"),
                            {{"level0_file_num_compaction_trigger", "3"},
                             {"level0_slowdown_writes_trigger", "3"}}));
  REQUIRE(IsBehind(db.get(), families));
  REQUIRE_OK(db->ContinueBackgroundWork());
}

}  // namespace
}  // namespace sstferry::test::ingest_gate_test
