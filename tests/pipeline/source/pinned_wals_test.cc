#include "pipeline/snapshot/snapshot_wals.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "format/coding.h"
#include "format/end_state.h"
#include "format/rocksdb/manifest_state.h"
#include "tests/support/catch.h"
#include "tests/support/log_bytes.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::pinned_wals_test {
namespace {

using test::PhysicalRecord;

void Append(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::app) << bytes;
}

// Types of log records.
constexpr uint8_t kPlain = 1;
constexpr uint8_t kWhole = 5;  // a record in a recycled WAL
constexpr uint8_t kFirst = 6;  // the first part of such a record

// Returns a batch of two entries, between other bytes.
std::string Batch(uint64_t sequence, const std::string& before = "",
                  const std::string& behind = "") {
  std::string batch;
  PutFixed64(&batch, sequence);
  PutFixed32(&batch, 2);
  const std::string entry("\x01\x01k\x01v", 5);
  return batch + before + entry + entry + behind;
}

// Returns how many bytes are copied from the older and the newer of two WALs.
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

TEST_CASE("Bytes after a recycled WAL's own records are copied only if "
          "recovery stops there",
          "[source]") {
  const ScratchDir dir;
  std::filesystem::create_directories(dir / "pinned");
  const std::string own = PhysicalRecord(kWhole, Batch(10), 4);
  const std::string old = PhysicalRecord(kWhole, Batch(3), 2);
  PinnedWals wals(dir.path(), dir / "pinned");
  wals.set_may_buffer(false);
  SECTION("records from before recycling, and the next WAL continues") {
    Append(dir / "000004.log", own + old);
    Append(dir / "000007.log", PhysicalRecord(kWhole, Batch(12), 7));
    REQUIRE(CopiedOfOlder(dir, &wals) == own.size());
  }
  SECTION("records from before recycling, and the next WAL is empty") {
    Append(dir / "000004.log", own + old);
    Append(dir / "000007.log", "");
    REQUIRE(CopiedOfOlder(dir, &wals) == own.size());
  }
  SECTION("records from before recycling, and a gap before the next WAL") {
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

TEST_CASE("A recovery that would stop at bytes that are not copied is found",
          "[source]") {
  const ScratchDir dir;
  std::filesystem::create_directories(dir / "pinned");
  const std::string own = PhysicalRecord(kWhole, Batch(10), 4);
  const std::string old = PhysicalRecord(kWhole, Batch(3), 2);
  const std::string next = PhysicalRecord(kWhole, Batch(12), 7);
  PinnedWals wals(dir.path(), dir / "pinned");
  wals.set_may_buffer(false);
  const auto recovers = [&](uint64_t flushed_before,
                            const PointInTime& rules = {},
                            uint64_t oldest = 4, bool has_table = true) {
    REQUIRE_OK(wals.Follow(4));
    // Bytes of a recycled WAL need no second look, others do.
    rocksdb::Status ends;
    do {
      ends = wals.CheckEnds();
      REQUIRE_OK(wals.Follow(4));
    } while (ends.IsTryAgain());
    REQUIRE_OK(ends);
    ManifestState state;
    ManifestFamily& family = state.families[0];
    family.name = "default";
    family.log_number = flushed_before;
    if (has_table) family.files[1].number = 1;
    const rocksdb::Status status = wals.CheckRecovery(state, oldest, rules);
    INFO(status.ToString());
    if (!status.ok()) {
      REQUIRE(EndStateOf(status) == EndState::kSourceError);
      REQUIRE(status.ToString().find(".log: ") != std::string::npos);
    }
    return status.ok();
  };
  const PointInTime before_9_1{.stops_at_old_records = false};
  const PointInTime as_files{.replays = false};
  SECTION("an old record, and a family was flushed after it") {
    Append(dir / "000004.log", own + old);
    Append(dir / "000007.log", "");
    REQUIRE_FALSE(recovers(7));
    REQUIRE_FALSE(recovers(7, as_files));
    REQUIRE(recovers(4));
    REQUIRE(recovers(7, before_9_1));
    REQUIRE(recovers(7, {}, /*oldest=*/7));
    REQUIRE(recovers(7, {}, 4, /*has_table=*/false));
  }
  SECTION("a WAL with only an old record") {
    Append(dir / "000004.log", old);
    Append(dir / "000007.log", "");
    REQUIRE_FALSE(recovers(7));
    REQUIRE(recovers(4));
  }
  SECTION("an old record, and the next WAL continues") {
    Append(dir / "000004.log", own + old);
    Append(dir / "000007.log", next);
    REQUIRE(recovers(7));
  }
  SECTION("recovery stops at the last such WAL") {
    Append(dir / "000004.log", own + old);
    Append(dir / "000007.log", next + old);
    REQUIRE(recovers(7));
    REQUIRE_FALSE(recovers(8));
  }
  SECTION("the middle of an old record") {
    Append(dir / "000004.log", own + old.substr(5));
    Append(dir / "000007.log", "");
    REQUIRE_FALSE(recovers(7));
    REQUIRE_FALSE(recovers(7, before_9_1));
    REQUIRE(recovers(4));
  }
  SECTION("a torn record is copied") {
    Append(dir / "000004.log", own + PhysicalRecord(kFirst, Batch(12), 4));
    Append(dir / "000007.log", "");
    REQUIRE(recovers(7));
  }
  SECTION("zeros") {
    Append(dir / "000004.log", own + std::string(20, '\0'));
    Append(dir / "000007.log", "");
    REQUIRE(recovers(7));
  }
  SECTION("records after a WAL without any") {
    Append(dir / "000004.log", old);
    Append(dir / "000007.log", next);
    REQUIRE_FALSE(recovers(4));
    REQUIRE_FALSE(recovers(4, as_files));
    REQUIRE(recovers(4, before_9_1));
  }
  SECTION("records after a gap") {
    Append(dir / "000004.log", own + old);
    Append(dir / "000007.log", PhysicalRecord(kWhole, Batch(14), 7));
    REQUIRE_FALSE(recovers(4));
    REQUIRE(recovers(4, as_files));  // the bytes are copied
    REQUIRE_FALSE(recovers(7, as_files));
    REQUIRE(recovers(7, before_9_1));
  }
}

TEST_CASE("The WAL after a transaction's commit continues the numbers that the "
          "commit took",
          "[source]") {
  const ScratchDir dir;
  std::filesystem::create_directories(dir / "pinned");
  const bool is_split = GENERATE(false, true);  // prepared in an earlier WAL
  const std::string section = PhysicalRecord(
      kWhole, Batch(10, "\x09", "\x0a\x01t"), is_split ? 3 : 4);
  std::string commit;
  PutFixed64(&commit, 10);
  PutFixed32(&commit, 0);
  commit = PhysicalRecord(kWhole, commit + "\x0b\x01t", 4);
  const std::string own = is_split ? commit : section + commit;
  const std::string old = PhysicalRecord(kWhole, Batch(3), 2);
  if (is_split) Append(dir / "000003.log", section);
  Append(dir / "000004.log", own + old);
  Append(dir / "000007.log", PhysicalRecord(kWhole, Batch(12), 7));
  PinnedWals wals(dir.path(), dir / "pinned");
  wals.set_may_buffer(false);
  REQUIRE_OK(wals.Follow(0));
  REQUIRE_OK(wals.CheckEnds());
  std::filesystem::create_directories(dir / "copy");
  std::vector<CopiedWal> copied;
  REQUIRE_OK(wals.CopyInto(dir / "copy", &copied));
  const CopiedWal& wal = copied.at(is_split ? 1 : 0);
  REQUIRE(wal.number == 4);
  REQUIRE(wal.bytes == own.size());
}

TEST_CASE("A WAL with only records from before recycling is copied if recovery "
          "stops before it",
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
  SECTION("no writes") {
    REQUIRE(Copied(dir, &wals).second == (stops ? old.size() : 0));
  }
  SECTION("recovery skips damage") {
    wals.set_passes_damage(true);
    REQUIRE(Copied(dir, &wals).second == 0);
  }
  SECTION("a standby does not recycle WALs") {
    wals.set_is_standby(true);
    REQUIRE(Copied(dir, &wals).second == 0);
  }
  SECTION("the owner writes after the snapshot") {
    REQUIRE_OK(wals.Follow(0));
    REQUIRE_OK(wals.CheckEnds());
    std::ofstream(dir / "000007.log", std::ios::binary)
        << PhysicalRecord(kWhole, Batch(12), 7);
    std::filesystem::create_directories(dir / "copy");
    std::vector<CopiedWal> copied;
    REQUIRE(wals.CopyInto(dir / "copy", &copied).IsTryAgain() == stops);
  }
}

// RocksDB 6.28 does not record which WAL is the oldest that it needs.
TEST_CASE("A WAL that its owner recycles during a snapshot is no longer copied",
          "[source]") {
  const ScratchDir dir;
  std::filesystem::create_directories(dir / "pinned");
  std::filesystem::create_directories(dir / "copy");
  Append(dir / "000004.log", PhysicalRecord(kWhole, Batch(10), 4));
  Append(dir / "000007.log", PhysicalRecord(kWhole, Batch(12), 7));
  PinnedWals wals(dir.path(), dir / "pinned");
  REQUIRE_OK(wals.Follow(0));
  std::filesystem::rename(dir / "000004.log", dir / "000009.log");
  std::fstream(dir / "000009.log",
               std::ios::in | std::ios::out | std::ios::binary)
      << PhysicalRecord(kWhole, Batch(14), 9);
  REQUIRE_OK(wals.Follow(0));
  REQUIRE_OK(wals.CheckEnds());
  std::vector<CopiedWal> copied;
  REQUIRE_OK(wals.CopyInto(dir / "copy", &copied));
  REQUIRE(copied.size() == 2);
  REQUIRE(copied[0].number == 7);
  REQUIRE(copied[1].number == 9);
}

TEST_CASE("Zeros that are too few for a header are copied with an older WAL",
          "[source]") {
  // kPointInTimeRecovery takes the zeros for a truncated header.
  const ScratchDir dir;
  std::filesystem::create_directories(dir / "pinned");
  const std::string own = PhysicalRecord(kPlain, Batch(10));
  Append(dir / "000004.log", own + std::string(3, '\0'));
  Append(dir / "000007.log", PhysicalRecord(kPlain, Batch(14)));
  PinnedWals wals(dir.path(), dir / "pinned");
  REQUIRE(CopiedOfOlder(dir, &wals) == own.size() + 3);
}

TEST_CASE("If its owner buffers, a WAL before an empty one is complete once it "
          "no longer grows",
          "[source]") {
  const ScratchDir dir;
  std::filesystem::create_directories(dir / "pinned");
  Append(dir / "000004.log", PhysicalRecord(kPlain, "first"));
  Append(dir / "000007.log", "");
  PinnedWals wals(dir.path(), dir / "pinned");
  wals.set_may_recycle(false);
  SECTION("the owner does not buffer") {
    wals.set_may_buffer(false);
    REQUIRE_OK(wals.Follow(0));
    REQUIRE_OK(wals.CheckEnds());
  }
  SECTION("the owner buffers") {
    int looks = 0;
    do {
      REQUIRE_OK(wals.Follow(0));
      // The WAL grows twice.
      if (looks < 2) Append(dir / "000004.log", PhysicalRecord(kPlain, "more"));
    } while (wals.CheckEnds().IsTryAgain() && ++looks < 20);
    REQUIRE(looks >= 4);
    REQUIRE(looks < 20);
  }
  SECTION("the later WAL has records") {
    Append(dir / "000007.log", PhysicalRecord(kPlain, "second"));
    REQUIRE_OK(wals.Follow(0));
    REQUIRE_OK(wals.CheckEnds());
  }
}

}  // namespace sstferry::pinned_wals_test
