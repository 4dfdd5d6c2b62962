// Which ranges a source gets of several, and which units two of them share.
#include <thread>

#include "pipeline/target/clone/unit_map.h"
#include "pipeline/target/lane/range_scheduler.h"
#include "tests/support/catch.h"

namespace sstferry {
namespace {

std::vector<Range> RangesOf(uint32_t count) {
  std::vector<Range> ranges(count);
  for (uint32_t id = 0; id < count; ++id) {
    ranges[id].id = id;
    ranges[id].estimated_bytes = 100 - id;  // in their order
  }
  return ranges;
}

RangeScheduler Scheduler(uint32_t count) {
  return RangeScheduler(RangesOf(count), std::vector<RangeStart>(count),
                        /*lanes=*/1);
}

TEST_CASE("The first source begins with what no other one has",
          "[pipeline][target]") {
  RangeScheduler scheduler = Scheduler(4);
  scheduler.Join(1, {0, 1, 3}, 1);
  REQUIRE(scheduler.Next(kFirstSource, 0) == 2u);
  REQUIRE(scheduler.Next(kFirstSource, 0) == 0u);
  REQUIRE(scheduler.Next(1, 0) == 1u);
  REQUIRE(scheduler.Next(1, 0) == 3u);
  REQUIRE(scheduler.Next(1, 0) == std::nullopt);
}

TEST_CASE("A source gets only what it has, and nothing once it has left",
          "[pipeline][target]") {
  RangeScheduler scheduler = Scheduler(3);
  REQUIRE(scheduler.Next(1, 0) == std::nullopt);
  scheduler.Join(1, {2}, 1);
  REQUIRE(scheduler.Next(1, 0) == 2u);
  scheduler.GiveBack(1, 2, /*counted_bytes=*/17);
  REQUIRE(scheduler.CountedBytes(2) == 17);
  REQUIRE(scheduler.CountedBytes(1) == 0);
  scheduler.Leave(1);
  REQUIRE(scheduler.Next(1, 0) == std::nullopt);
  REQUIRE(scheduler.Next(kFirstSource, 0) == 0u);
  REQUIRE(scheduler.Next(kFirstSource, 0) == 1u);
  REQUIRE(scheduler.Next(kFirstSource, 0) == 2u);
}

TEST_CASE("What a source gives back goes to any that has it",
          "[pipeline][target]") {
  RangeScheduler scheduler = Scheduler(2);
  scheduler.Join(1, {0, 1}, 1);
  scheduler.Join(2, {1}, 1);
  REQUIRE(scheduler.Next(1, 0) == 0u);
  REQUIRE(scheduler.Next(1, 0) == 1u);
  REQUIRE(scheduler.Next(2, 0) == std::nullopt);
  scheduler.GiveBack(1, 1, 0);
  scheduler.GiveBack(1, 0, 0);
  scheduler.Leave(1);
  // Nobody else has range 0 any more.
  REQUIRE(scheduler.Next(kFirstSource, 0) == 0u);
  REQUIRE(scheduler.Next(2, 0) == 1u);
}

TEST_CASE("A lane of the first source waits for what others may give back",
          "[pipeline][target]") {
  RangeScheduler scheduler = Scheduler(1);
  scheduler.Join(1, {0}, 1);
  REQUIRE(scheduler.Next(1, 0) == 0u);
  std::optional<uint32_t> got;
  std::thread lane([&] { got = scheduler.Next(kFirstSource, 0); });
  SECTION("it is given back") {
    scheduler.GiveBack(1, 0, 0);
    lane.join();
    REQUIRE(got == 0u);
  }
  SECTION("it is done") {
    scheduler.Done(1, 0);
    lane.join();
    REQUIRE(got == std::nullopt);
  }
  SECTION("the pull ends") {
    scheduler.Stop();
    lane.join();
    REQUIRE(got == std::nullopt);
  }
}

CloneFile File(CloneFileKind kind, uint64_t number, uint64_t bytes,
               uint64_t identity) {
  CloneFile file;
  file.kind = kind;
  file.number = number;
  file.bytes = bytes;
  file.identity.low = identity;
  return file;
}

ClonePlan PlanOf(std::vector<CloneFile> files) {
  ClonePlan plan;
  files.push_back(File(CloneFileKind::kManifest, 90, 50, 0));
  plan.set.unit_bytes = 100;
  plan.set.file_count = static_cast<uint32_t>(files.size());
  plan.files = std::move(files);
  return plan;
}

TEST_CASE("Units of two sources are the same by identity, kind, size and place",
          "[pipeline][target]") {
  constexpr CloneFileKind kTable = CloneFileKind::kTable;
  // Two units of the first table, one each of the others and the MANIFEST.
  const ClonePlan ours = PlanOf({File(kTable, 1, 150, 7), File(kTable, 2, 80, 8),
                                 File(kTable, 3, 80, 0),
                                 File(CloneFileKind::kBlob, 4, 80, 9)});
  const ClonePlan theirs = PlanOf(
      {File(kTable, 5, 80, 0), File(CloneFileKind::kBlob, 6, 81, 9),
       File(kTable, 7, 80, 9), File(kTable, 8, 150, 7)});
  UnitMap map;
  REQUIRE_OK(UnitMap::Make(ours, theirs, &map));
  REQUIRE(map.common() == std::vector<uint32_t>{0, 1});
  uint32_t id = 0;
  REQUIRE(map.FindTheirs(1, &id));
  REQUIRE(id == 4);
  REQUIRE(map.FindOurs(3, &id));
  REQUIRE(id == 0);
  REQUIRE_FALSE(map.FindTheirs(3, &id));  // no identity
  REQUIRE_FALSE(map.FindOurs(1, &id));    // another size
  REQUIRE_FALSE(map.FindOurs(2, &id));    // another kind
}

}  // namespace
}  // namespace sstferry
