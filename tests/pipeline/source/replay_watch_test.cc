// Compares what a recovery replayed with what it should replay. The check
// counts RocksDB's calls, and does not parse its log messages.
#include "pipeline/snapshot/replay_watch.h"

#include <filesystem>

#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "tests/pipeline/source/snapshot_support.h"
#include "tests/support/catch.h"

namespace sstferry::replay_watch_test {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kRecords = 3;

// Makes a database with the records 1, 2 and 3 in its only WAL, and returns the
// WAL's number.
uint64_t MakeWal(const std::string& dir) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.avoid_flush_during_shutdown = true;
  test::OpenDb db(options, dir);
  for (uint64_t i = 1; i <= kRecords; ++i) {
    REQUIRE_OK(db->Put(rocksdb::WriteOptions(), std::to_string(i), "value"));
  }
  REQUIRE_OK(db->SyncWAL());
  const std::vector<std::string> wals = FilesWith(dir, ".log");
  REQUIRE(wals.size() == 1);
  return std::stoull(wals.front());
}

ReplayedRecords Upto(uint64_t wal, uint64_t last) {
  ReplayedRecords records;
  for (uint64_t i = 1; i <= last; ++i) {
    records.Add(wal, i);
  }
  return records;
}

bool IsComplete(const std::string& dir, const ReplayedRecords& expected,
                bool may_follow) {
  ReplayWatch watch(expected, may_follow);
  rocksdb::Options options;
  watch.Watch(&options);
  std::unique_ptr<rocksdb::DB> db;
  REQUIRE_OK(rocksdb::DB::OpenForReadOnly(options, dir, IntoDb(&db)));
  REQUIRE(watch.replayed() == kRecords);
  return watch.IsComplete();
}

TEST_CASE("A recovery is complete if it replayed all expected records",
          "[snapshot]") {
  ScratchDir dir;
  const uint64_t wal = MakeWal(dir / "db");
  CHECK(IsComplete(dir / "db", Upto(wal, 3), false));
  CHECK(IsComplete(dir / "db", Upto(wal, 3), true));
}

TEST_CASE("A recovery that replayed fewer records is not complete",
          "[snapshot]") {
  ScratchDir dir;
  const uint64_t wal = MakeWal(dir / "db");
  const bool may_follow = GENERATE(false, true);
  CHECK_FALSE(IsComplete(dir / "db", Upto(wal, 4), may_follow));
  CHECK_FALSE(IsComplete(dir / "db", Upto(wal + 1, 3), may_follow));
}

TEST_CASE("A recovery may replay more records only after a truncated record",
          "[snapshot]") {
  ScratchDir dir;
  const uint64_t wal = MakeWal(dir / "db");
  CHECK_FALSE(IsComplete(dir / "db", Upto(wal, 2), false));
  CHECK(IsComplete(dir / "db", Upto(wal, 2), true));
  CHECK(IsComplete(dir / "db", ReplayedRecords(), true));
}

}  // namespace
}  // namespace sstferry::replay_watch_test
