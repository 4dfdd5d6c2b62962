// Tests clones of databases whose tables have no unique id and do not name the
// database that wrote them, as RocksDB before 6.29 wrote them. They are
// verified by files, and reused by the next swap.
#include <filesystem>
#include <random>

#include "format/byte_source.h"
#include "format/rocksdb/sst_reader.h"
#include "pipeline/base/rocksdb_compat.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/sample_database.h"
#include "tests/support/sst_files.h"
#include "tests/support/test_db.h"

namespace sstferry::test::clone_old_tables_test {
namespace {

namespace fs = std::filesystem;

// Copies a database with three tables of ten keys and one record in a WAL,
// which that RocksDB wrote.
void CopyOld(const std::string& version, const std::string& to) {
  fs::copy(std::string(SSTFERRY_SOURCE_DIR) + "/tests/golden/old_database/" +
               version,
           to);
}

Ferried Swap(const ScratchDir& dir) {
  PullOptions options;
  options.source.directory = dir / "source";
  options.target_dir = dir / "target";
  options.method = PullMethod::kClone;
  options.mode = PullMode::kSwap;
  // The option says that the replica's application reads what the linked
  // RocksDB reads. The old OPTIONS in the replica would say otherwise.
  options.for_rocksdb = RocksDbVersion();
  Ferried swapped;
  swapped.status = MakePull(options)->Run(&swapped.summary);
  INFO(swapped.message());
  REQUIRE_OK(swapped.status);
  return swapped;
}

Summary VerifyBoth(const ScratchDir& dir) {
  VerifyOptions options;
  options.left.directory = dir / "source";
  options.right.directory = dir / "target";
  Summary summary;
  MakeVerify(options)->Run(&summary).PermitUncheckedError();
  return summary;
}

// Changes `text` in the first data block of an uncompressed table, and the
// block's checksum. Size, properties and bounds stay the same, so the table's
// weak identity does too.
void ChangeValue(const std::string& path, const std::string& text,
                 const std::string& other) {
  std::string file = BytesOf(path);
  SstBlockHandle first;
  {
    const SliceSource source(file);
    SstReader reader;
    REQUIRE_OK(reader.Open(&source));
    bool found = false;
    REQUIRE_OK(reader.ForEachIndexEntry([&](const SstIndexEntry& entry) {
      if (!found) first = entry.handle;
      found = true;
      return rocksdb::Status::OK();
    }));
  }
  REQUIRE(text.size() == other.size());
  const size_t at = file.find(text);
  REQUIRE(at < first.offset + first.size);
  file.replace(at, other.size(), other);
  Reseal(&file, first);
  // Writes a new file, because a hard link in another database may share the
  // old one.
  fs::remove(path);
  WriteBytes(path, file);
}

std::string TableWith(const std::string& dir, const std::string& text) {
  for (const std::string& path : PathsWith(dir, ".sst")) {
    if (BytesOf(path).find(text) != std::string::npos) return path;
  }
  FAIL("no table in " << dir << " holds " << text);
  return "";
}

TEST_CASE("A clone of an old RocksDB's tables is compared by its files",
          "[transfer][clone][old_tables]") {
  const ScratchDir dir;
  CopyOld(GENERATE("5.18.3", "6.8.1"), dir / "source");
  Swap(dir);
  const Summary same = VerifyBoth(dir);
  INFO(same.status.ToString());
  REQUIRE_OK(same.status);
  REQUIRE(same.compared == "files");
  REQUIRE(same.files_compared == 3);
  // The identity is the same, the bytes differ.
  ChangeValue(TableWith(dir / "target", "value 4 of table 1"),
              "value 4 of table 1", "value 4 OF table 1");
  REQUIRE(EndStateOf(VerifyBoth(dir).status) == EndState::kDifferent);
}

TEST_CASE("A swap sends none of an old RocksDB's tables that the target has",
          "[transfer][clone][reuse][old_tables]") {
  const ScratchDir dir;
  CopyOld(GENERATE("5.18.3", "6.8.1"), dir / "source");
  REQUIRE(Swap(dir).summary.files_reused == 0);
  SECTION("nothing has changed") {
    REQUIRE_FALSE(Swap(dir).summary.exchanged);
  }
  SECTION("another table was added") {
    {
      OpenDb db(dir / "source", OneFamily(Quiet()));
      db.Put("new", "value");
      db.Flush();
    }
    const Ferried night = Swap(dir);
    REQUIRE(night.summary.exchanged);
    REQUIRE(night.summary.files_reused == 3);
    ExpectSameEntries(dir / "source", dir / "target");
    REQUIRE_OK(VerifyBoth(dir).status);
  }
}

TEST_CASE("A table with the same weak identity and other bytes is not reused",
          "[transfer][clone][reuse][old_tables]") {
  const ScratchDir dir;
  CopyOld("6.8.1", dir / "source");
  Swap(dir);
  ChangeValue(TableWith(dir / "target", "value 4 of table 1"),
              "value 4 of table 1", "value 4 OF table 1");
  const Ferried night = Swap(dir);
  REQUIRE(night.summary.exchanged);
  REQUIRE(night.summary.files_reused == 2);
  REQUIRE(night.notes_mention("differ from the source's"));
  ExpectSameEntries(dir / "source", dir / "target");
  REQUIRE_OK(VerifyBoth(dir).status);
}

TEST_CASE("Swaps of changed old tables end with the source's entries",
          "[transfer][clone][reuse][old_tables][history]") {
  const ScratchDir dir;
  CopyOld("6.8.1", dir / "source");
  Swap(dir);
  std::mt19937 random(20'261'124);
  for (int night = 0; night < 12; ++night) {
    // On either side, some tables are replaced by tables with other bytes and
    // the same weak identity.
    for (const std::string& side : {dir / "source", dir / "target"}) {
      for (const std::string& path : PathsWith(side, ".sst")) {
        if (random() % 3 != 0) continue;
        const std::string value =
            "value " + std::to_string(random() % 9) + " of table ";
        const std::string other = "vAlue " + std::to_string(random() % 9) +
                                  (random() % 2 == 0 ? " OF tAble "
                                                     : " of Table ");
        if (BytesOf(path).find(value) != std::string::npos) {
          ChangeValue(path, value, other);
        }
      }
    }
    Swap(dir);
    INFO("night " << night);
    for (const std::string& path : PathsWith(dir / "source", ".sst")) {
      REQUIRE(BytesOf(path) ==
              BytesOf(dir / "target/" + fs::path(path).filename().string()));
    }
    REQUIRE_OK(VerifyBoth(dir).status);
  }
}

}  // namespace
}  // namespace sstferry::test::clone_old_tables_test
