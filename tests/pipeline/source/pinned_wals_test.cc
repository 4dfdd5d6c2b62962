#include "pipeline/snapshot/snapshot_wals.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "format/coding.h"
#include "format/crc32c.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::pinned_wals_test {
namespace {

// A whole record.
std::string Record(const std::string& payload) {
  const std::string checked = '\x01' + payload;
  std::string record;
  PutFixed32(&record, MaskCrc32c(Crc32c(checked.data(), checked.size())));
  PutFixed16(&record, static_cast<uint16_t>(payload.size()));
  return record + checked;
}

void Append(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::app) << bytes;
}

constexpr uint8_t kWhole = 5;
constexpr uint8_t kFirst = 6;

// A record of a recycled WAL.
std::string Recycled(uint8_t type, uint32_t log, const std::string& payload) {
  std::string checked(1, static_cast<char>(type));
  PutFixed32(&checked, log);
  checked += payload;
  std::string record;
  PutFixed32(&record, MaskCrc32c(Crc32c(checked.data(), checked.size())));
  PutFixed16(&record, static_cast<uint16_t>(payload.size()));
  return record + checked;
}

// A batch of two entries.
std::string Batch(uint64_t sequence) {
  std::string batch;
  PutFixed64(&batch, sequence);
  PutFixed32(&batch, 2);
  return batch + "the entries";
}

// Bytes that are copied of 000004.log.
uint64_t CopiedOfOlder(const ScratchDir& dir, PinnedWals* wals) {
  REQUIRE_OK(wals->Follow(0));
  REQUIRE_OK(wals->CheckEnds());
  std::filesystem::create_directories(dir / "copy");
  std::vector<CopiedWal> copied;
  REQUIRE_OK(wals->CopyInto(dir / "copy", &copied));
  REQUIRE(copied.size() == 2);
  REQUIRE(copied[0].number == 4);
  return copied[0].bytes;
}

}  // namespace

TEST_CASE("What lies behind a recycled WAL's records is copied where recovery "
          "stops there",
          "[source]") {
  const ScratchDir dir;
  std::filesystem::create_directories(dir / "pinned");
  const std::string own = Recycled(kWhole, 4, Batch(10));
  const std::string old = Recycled(kWhole, 2, Batch(3));
  PinnedWals wals(dir.path(), dir / "pinned");
  wals.set_may_buffer(false);
  SECTION("records of an earlier life, and the next WAL continues") {
    Append(dir / "000004.log", own + old);
    Append(dir / "000007.log", Recycled(kWhole, 7, Batch(12)));
    REQUIRE(CopiedOfOlder(dir, &wals) == own.size());
  }
  SECTION("records of an earlier life, and none behind") {
    Append(dir / "000004.log", own + old);
    Append(dir / "000007.log", "");
    REQUIRE(CopiedOfOlder(dir, &wals) == own.size());
  }
  SECTION("records of an earlier life, and some are missing before the next") {
    Append(dir / "000004.log", own + old);
    Append(dir / "000007.log", Recycled(kWhole, 7, Batch(14)));
    const bool passes_damage = GENERATE(false, true);
    wals.set_passes_damage(passes_damage);
    REQUIRE(CopiedOfOlder(dir, &wals) ==
            own.size() + (passes_damage ? 0 : old.size()));
  }
  SECTION("a torn record") {
    const std::string torn = Recycled(kFirst, 4, Batch(12));
    Append(dir / "000004.log", own + torn);
    Append(dir / "000007.log", Recycled(kWhole, 7, Batch(12)));
    REQUIRE(CopiedOfOlder(dir, &wals) == own.size() + torn.size());
  }
}

TEST_CASE("Zeros that are too few for a header are copied with an older WAL",
          "[source]") {
  // kPointInTimeRecovery takes them for a header that was cut.
  const ScratchDir dir;
  std::filesystem::create_directories(dir / "pinned");
  const std::string own = Record(Batch(10));
  Append(dir / "000004.log", own + std::string(3, '\0'));
  Append(dir / "000007.log", Record(Batch(14)));
  PinnedWals wals(dir.path(), dir / "pinned");
  REQUIRE(CopiedOfOlder(dir, &wals) == own.size() + 3);
}

TEST_CASE("A WAL before an empty one counts once it does not grow, if its owner "
          "buffers",
          "[source]") {
  const ScratchDir dir;
  std::filesystem::create_directories(dir / "pinned");
  Append(dir / "000004.log", Record("first"));
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
      if (looks < 2) Append(dir / "000004.log", Record("more"));
    } while (wals.CheckEnds().IsTryAgain() && ++looks < 20);
    REQUIRE(looks >= 4);
    REQUIRE(looks < 20);
  }
  SECTION("the later one has begun") {
    Append(dir / "000007.log", Record("second"));
    REQUIRE_OK(wals.Follow(0));
    REQUIRE_OK(wals.CheckEnds());
  }
}

}  // namespace sstferry::pinned_wals_test
