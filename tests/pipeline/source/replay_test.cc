// The record of what recovery replayed. A restarted source reads it.
#include "pipeline/snapshot/snapshot_replay.h"
#include "tests/support/catch.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::test::replay_test {
namespace {

TEST_CASE("A replay record contains all that recovery found", "[snapshot]") {
  ScratchDir dir;
  Replay replay;
  replay.entries = 3;
  replay.prepared = 4;
  replay.torn = "000012.log";
  replay.records.Add(12, 5);
  // One flag at a time, so that none is mistaken for another.
  const int flag = GENERATE(0, 1, 2, 3);
  replay.has_prepare_sections = flag == 1;
  replay.is_torn_inside = flag == 2;
  replay.has_single_deletes = flag == 3;
  REQUIRE_OK(WriteReplay(dir / "replay", replay));
  Replay read;
  LoadReplay(dir / "replay", &read);
  REQUIRE(read.entries == 3);
  REQUIRE(read.prepared == 4);
  REQUIRE(read.torn == "000012.log");
  REQUIRE(read.records == replay.records);
  REQUIRE(read.has_prepare_sections == (flag == 1));
  REQUIRE(read.is_torn_inside == (flag == 2));
  REQUIRE(read.has_single_deletes == (flag == 3));
}

TEST_CASE("Without its record, a replay may have contained anything",
          "[snapshot]") {
  ScratchDir dir;
  const bool is_damaged = GENERATE(false, true);
  if (is_damaged) {
    WriteBytes(dir / "replay", "SFREPLY1 and something else");
  }
  Replay read;
  LoadReplay(dir / "replay", &read);
  REQUIRE(read.entries == UINT64_MAX);
  REQUIRE(read.has_single_deletes);
  REQUIRE(read.records.count == UINT64_MAX);
  REQUIRE_FALSE(read.torn.empty());
}

}  // namespace
}  // namespace sstferry::test::replay_test
