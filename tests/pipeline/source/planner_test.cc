// Tests how evenly the planner cuts databases of different shapes.
#include "pipeline/parts/planner.h"

#include <algorithm>
#include <memory>

#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "tests/support/catch.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::planner_test {
namespace {

constexpr uint32_t kLanes = 4;
constexpr size_t kWanted = kLanes * kPartsPerLane;

// Requires that the parts tile the keys, that there are at least 75 % of the
// wanted number, and that none is twice the mean.
void RequireEvenTiles(const std::vector<Part>& parts) {
  REQUIRE(parts.size() >= kWanted * 3 / 4);
  uint64_t sum = 0;
  uint64_t largest = 0;
  std::optional<std::string> next;
  for (size_t i = 0; i < parts.size(); ++i) {
    REQUIRE(parts[i].id == i);
    REQUIRE(parts[i].interval.begin == next);
    next = parts[i].interval.end;
    REQUIRE(next.has_value() == (i + 1 < parts.size()));
    sum += parts[i].bytes;
    largest = std::max(largest, parts[i].bytes);
  }
  INFO(parts.size() << " parts, largest " << largest << " of " << sum);
  REQUIRE(largest <= 2 * sum / parts.size());
}

TEST_CASE("Planner cuts any shape of files into many even parts",
          "[source][planner]") {
  ScratchDir dir;
  SampleShape shape;
  shape.entries = 20'000;
  SECTION("all data in level 0") { shape.files = 6; }
  SECTION("one huge file") { shape.files = 1; }
  SECTION("all data in the WAL, flushed by the snapshot") {
    shape.in_wal_only = true;
  }
  MakeSampleDatabase(dir / "db", shape);
  rocksdb::Options options;
  options.compression = rocksdb::kNoCompression;
  options.disable_auto_compactions = true;
  options.avoid_flush_during_recovery = false;
  std::unique_ptr<rocksdb::DB> db;
  REQUIRE_OK(rocksdb::DB::Open(options, dir / "db", IntoDb(&db)));
  PlannerFamily family;
  family.handle = db->DefaultColumnFamily();
  PlannerOptions planned;
  planned.lanes = kLanes;
  FamilyPlan plan;
  std::vector<Part> parts;
  REQUIRE_OK(PlanFiles(db.get(), family, planned, &plan));
  REQUIRE_OK(CutFamily(family, planned,
                       PartTargetBytes(RebuiltBytes(plan), planned), &plan,
                       &parts));
  RequireEvenTiles(parts);
}

}  // namespace
}  // namespace sstferry::planner_test
