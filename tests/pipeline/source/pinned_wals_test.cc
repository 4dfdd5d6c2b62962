#include "pipeline/snapshot/snapshot_wals.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "format/coding.h"
#include "tests/support/catch.h"
#include "tests/support/log_bytes.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::pinned_wals_test {
namespace {

using test::PhysicalRecord;

void Append(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::app) << bytes;
}

// Types of records.
constexpr uint8_t kPlain = 1;
constexpr uint8_t kWhole = 5;  // of a recycled WAL
constexpr uint8_t kFirst = 6;  // the first part of one

// A batch of two entries.
std::string Batch(uint64_t sequence) {
  std::string batch;
  PutFixed64(&batch, sequence);
  PutFixed32(&batch, 2);
  return batch + "the entries";
}

// Bytes that are copied of the older WAL of two, and of the newer.
std::pair<uint64_t, uint64_t> Copied(const ScratchDir& dir, PinnedWals* wals) {
  REQUIRE_OK(wals->Follow(0));
  REQUIRE_OK(wals->CheckEnds());
  std::filesystem::create_directories(dir / "copy");
  std::vector<CopiedWal> copied;
  REQUIRE_OK(wals->CopyInto(dir / "copy", &copied));
  REQUIRE(copied.size() == 2);
  REQUIRE(copied[0].number == 4);
  return {copied[0].bytes, copied[1].bytes};
}
uint64_t CopiedOfOlder(const ScratchDir& dir, PinnedWals* wals) {
  return Copied(dir, wals).first;
}

}  // namespace

TEST_CASE("What lies behind a recycled WAL's records is copied where recovery "
          "stops there",
          "[source]") {
  const ScratchDir dir;
  std::filesystem::create_directories(dir / "pinned");
  const std::string own = PhysicalRecord(kWhole, Batch(10), 4);
  const std::string old = PhysicalRecord(kWhole, Batch(3), 2);
  PinnedWals wals(dir.path(), dir / "pinned");
  wals.set_may_buffer(false);
  SECTION("records of an earlier life, and the next WAL continues") {
    Append(dir / "000004.log", own + old);
    Append(dir / "000007.log", PhysicalRecord(kWhole, Batch(12), 7));
    REQUIRE(CopiedOfOlder(dir, &wals) == own.size());
  }
  SECTION("records of an earlier life, and none behind") {
    Append(dir / "000004.log", own + old);
    Append(dir / "000007.log", "");
    REQUIRE(CopiedOfOlder(dir, &wals) == own.size());
  }
  SECTION("records of an earlier life, and some are missing before the next") {
    Append(dir / "000004.log", own + old);
    Append(dir / "000007.log", PhysicalRecord(kWhole, Batch(14), 7));
    const bool passes_damage = GENERATE(false, true);
    wals.set_passes_damage(passes_damage);
    REQUIRE(CopiedOfOlder(dir, &wals) ==
            own.size() + (passes_damage ? 0 : old.size()));
  }
  SECTION("a torn record") {
    const std::string torn = PhysicalRecord(kFirst, Batch(12), 4);
    Append(dir / "000004.log", own + torn);
    Append(dir / "000007.log", PhysicalRecord(kWhole, Batch(12), 7));
    REQUIRE(CopiedOfOlder(dir, &wals) == own.size() + torn.size());
  }
}

TEST_CASE("Records of an earlier life are copied with a WAL that has no others, "
          "once recovery has stopped",
          "[source]") {
  const ScratchDir dir;
  std::filesystem::create_directories(dir / "pinned");
  const std::string own = PhysicalRecord(kWhole, Batch(10), 4);
  const std::string old = PhysicalRecord(kWhole, Batch(3), 2);
  const std::string torn = PhysicalRecord(kFirst, Batch(12), 4);
  const bool stops = GENERATE(false, true);
  Append(dir / "000004.log", stops ? own + torn : own);
  Append(dir / "000007.log", old);
  PinnedWals wals(dir.path(), dir / "pinned");
  wals.set_may_buffer(false);
  SECTION("nobody writes") {
    REQUIRE(Copied(dir, &wals).second == (stops ? old.size() : 0));
  }
  SECTION("recovery passes over damage") {
    wals.set_passes_damage(true);
    REQUIRE(Copied(dir, &wals).second == 0);
  }
  SECTION("a standby has no earlier lives") {
    wals.set_is_standby(true);
    REQUIRE(Copied(dir, &wals).second == 0);
  }
  SECTION("the owner writes behind the cut") {
    REQUIRE_OK(wals.Follow(0));
    REQUIRE_OK(wals.CheckEnds());
    std::ofstream(dir / "000007.log", std::ios::binary)
        << PhysicalRecord(kWhole, Batch(12), 7);
    std::filesystem::create_directories(dir / "copy");
    std::vector<CopiedWal> copied;
    REQUIRE(wals.CopyInto(dir / "copy", &copied).IsTryAgain() == stops);
  }
}

TEST_CASE("Zeros that are too few for a header are copied with an older WAL",
          "[source]") {
  // kPointInTimeRecovery takes them for a header that was cut.
  const ScratchDir dir;
  std::filesystem::create_directories(dir / "pinned");
  const std::string own = PhysicalRecord(kPlain, Batch(10));
  Append(dir / "000004.log", own + std::string(3, '\0'));
  Append(dir / "000007.log", PhysicalRecord(kPlain, Batch(14)));
  PinnedWals wals(dir.path(), dir / "pinned");
  REQUIRE(CopiedOfOlder(dir, &wals) == own.size() + 3);
}

TEST_CASE("A WAL before an empty one counts once it does not grow, if its owner "
          "buffers",
          "[source]") {
  const ScratchDir dir;
  std::filesystem::create_directories(dir / "pinned");
  Append(dir / "000004.log", PhysicalRecord(kPlain, "first"));
  Append(dir / "000007.log", "");
  PinnedWals wals(dir.path(), dir / "pinned");
  wals.set_may_recycle(false);
  SECTION("it does not buffer") {
    wals.set_may_buffer(false);
    REQUIRE_OK(wals.Follow(0));
    REQUIRE_OK(wals.CheckEnds());
  }
  SECTION("it does") {
    int looks = 0;
    do {
      REQUIRE_OK(wals.Follow(0));
      // Twice, the WAL grows.
      if (looks < 2) Append(dir / "000004.log", PhysicalRecord(kPlain, "more"));
    } while (wals.CheckEnds().IsTryAgain() && ++looks < 20);
    REQUIRE(looks >= 4);
    REQUIRE(looks < 20);
  }
  SECTION("the later one has begun") {
    Append(dir / "000007.log", PhysicalRecord(kPlain, "second"));
    REQUIRE_OK(wals.Follow(0));
    REQUIRE_OK(wals.CheckEnds());
  }
}

}  // namespace sstferry::pinned_wals_test
