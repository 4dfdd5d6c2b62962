// Damaged, incomplete and foreign sources. A snapshot must fail with an error
// that names the file or the family, and never succeed with missing entries.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/snapshot/snapshot.h"
#include "rocksdb/convenience.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/version.h"
#include "tests/pipeline/source/snapshot_support.h"
#include "tests/support/catch.h"
#include "tests/support/named_comparator.h"
#include "tests/support/sample_database.h"

namespace sstferry::snapshot_bad_source_test {
namespace {

rocksdb::Options Plain() {
  rocksdb::Options options;
  options.disable_auto_compactions = true;
  return options;
}

class HouseMerge : public rocksdb::AssociativeMergeOperator {
 public:
  const char* Name() const override { return "house.Merge"; }
  bool Merge(const rocksdb::Slice&, const rocksdb::Slice* existing,
             const rocksdb::Slice& value, std::string* result,
             rocksdb::Logger*) const override {
    *result = (existing == nullptr ? "" : existing->ToString() + "+") +
              value.ToString();
    return true;
  }
};

rocksdb::Status TakeStatus(const SnapshotOptions& options) {
  std::unique_ptr<Snapshot> snapshot;
  return Snapshot::Create(options, &snapshot);
}

rocksdb::Status TakeStatus(const std::string& directory) {
  SnapshotOptions options;
  options.database_dir = directory;
  return TakeStatus(options);
}

void RequireFailure(const rocksdb::Status& status, EndState state,
                    const std::string& words) {
  INFO(status.ToString());
  CHECK(EndStateOf(status) == state);
  CHECK(MessageOf(status).find(words) != std::string::npos);
}

void Fill(test::OpenDb* db, size_t family, int from, int to) {
  for (int i = from; i < to; i++) {
    REQUIRE_OK((*db)->Put(rocksdb::WriteOptions(), db->family(family),
                          "key" + std::to_string(i), std::string(100, 'v')));
  }
}

// Makes a database with two SST files and a WAL.
void MakeDatabase(const std::string& directory) {
  test::OpenDb db(Plain(), directory);
  for (int file = 0; file < 2; file++) {
    Fill(&db, 0, file * 100, file * 100 + 100);
    REQUIRE_OK(db->Flush(rocksdb::FlushOptions()));
  }
  Fill(&db, 0, 200, 700);
}

TEST_CASE("Snapshot names directories that are not databases",
          "[snapshot][corruption]") {
  ScratchDir tree;
  std::filesystem::create_directory(tree / "empty");
  RequireFailure(TakeStatus(tree / "empty"), EndState::kSourceError,
                 "no CURRENT file in " + (tree / "empty"));
  RequireFailure(TakeStatus(tree / "absent"), EndState::kSourceError,
                 "absent");
  MakeDatabase(tree / "db");
  std::filesystem::resize_file(tree / "db/CURRENT", 5);
  RequireFailure(TakeStatus(tree / "db"), EndState::kCorrupt, "db/CURRENT");
  CHECK(NamesIn(tree.path()) == std::vector<std::string>{"db", "empty"});
}

TEST_CASE("Snapshot names a missing or truncated SST file",
          "[snapshot][corruption]") {
  ScratchDir tree;
  MakeDatabase(tree / "db");
  const auto tables = FilesWith(tree / "db", ".sst");
  REQUIRE(tables.size() == 2);
  const std::string first = tree / ("db/" + tables[0]);
  SECTION("cut") {
    std::filesystem::resize_file(first,
                                 std::filesystem::file_size(first) - 1);
    RequireFailure(TakeStatus(tree / "db"), EndState::kCorrupt, tables[0]);
  }
  SECTION("missing") {
    std::filesystem::remove(first);
    RequireFailure(TakeStatus(tree / "db"), EndState::kSourceError,
                   tables[0]);
  }
  SECTION("missing MANIFEST") {
    const auto names = NamesIn(tree / "db");
    for (const std::string& name : names) {
      if (name.rfind("MANIFEST", 0) == 0) {
        std::filesystem::remove(tree / ("db/" + name));
      }
    }
    RequireFailure(TakeStatus(tree / "db"), EndState::kSourceError,
                   "MANIFEST");
  }
}

TEST_CASE("Snapshot distinguishes tables of a newer RocksDB from damaged ones",
          "[snapshot][corruption]") {
  ScratchDir tree;
  MakeDatabase(tree / "db");
  // The format version is 12 bytes before a table's end.
  const std::string table = FilesWith(tree / "db", ".sst").front();
  const std::string path = tree / "db/" + table;
  FlipByte(path, std::filesystem::file_size(path) - 12, 0x40);
  RequireFailure(TakeStatus(tree / "db"), EndState::kCorrupt,
                 "unsupported format_version");
  for (const std::string& name : NamesIn(tree / "db")) {
    if (name.starts_with("OPTIONS-")) {
      std::string text = BytesOf(tree / "db/" + name);
      const std::string key = "rocksdb_version=";
      text.insert(text.find(key) + key.size(), "9");
      WriteBytes(tree / "db/" + name, text);
    }
  }
  const std::string here = rocksdb::GetRocksVersionAsString();
  const uint32_t written = rocksdb::BlockBasedTableOptions().format_version;
  RequireFailure(TakeStatus(tree / "db"), EndState::kIncompatible,
                 table + ": expected a table that RocksDB " + here +
                     " in this sstferry reads, found format_version " +
                     std::to_string(0x40 + written));
}

TEST_CASE("Snapshot names a missing or truncated blob file",
          "[snapshot][corruption]") {
  ScratchDir tree;
  rocksdb::Options options = Plain();
  options.enable_blob_files = true;
  {
    test::OpenDb db(options, tree / "db");
    for (int file = 0; file < 2; file++) {
      Fill(&db, 0, file * 100, file * 100 + 100);
      REQUIRE_OK(db->Flush(rocksdb::FlushOptions()));
    }
  }
  const auto blobs = FilesWith(tree / "db", ".blob");
  REQUIRE(blobs.size() == 2);
  const std::string first = tree / ("db/" + blobs[0]);
  SECTION("cut") {
    std::filesystem::resize_file(first,
                                 std::filesystem::file_size(first) - 1);
    RequireFailure(TakeStatus(tree / "db"), EndState::kCorrupt, blobs[0]);
  }
  SECTION("missing") {
    std::filesystem::remove(first);
    RequireFailure(TakeStatus(tree / "db"), EndState::kSourceError, blobs[0]);
  }
}

TEST_CASE("Snapshot never opens a WAL with a flipped byte",
          "[snapshot][corruption]") {
  ScratchDir tree;
  const bool recycled = GENERATE(false, true);
  INFO((recycled ? "recycled" : "plain"));
  rocksdb::Options options = Plain();
  if (recycled) {
    options.recycle_log_file_num = 2;
    options.wal_recovery_mode =
        rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords;
  }
  // The database stays open, because closing it would cut off the old records
  // in a recycled WAL.
  test::OpenDb db(options, tree / "db");
  {
    for (int round = 0; round < 5; round++) {
      // The last use of a recycled file is shorter than the previous one.
      Fill(&db, 0, 0, round < 4 ? 900 : 500);
      if (round < 4) REQUIRE_OK(db->Flush(rocksdb::FlushOptions()));
    }
  }
  // The newest WAL. Spare files to recycle have lower numbers.
  const auto wals = FilesWith(tree / "db", ".log");
  REQUIRE_FALSE(wals.empty());
  const std::string wal = tree / ("db/" + wals.back());
  REQUIRE_OK(TakeStatus(tree / "db"));
  REQUIRE((std::filesystem::file_size(wal) > 100'000) == recycled);
  // Offsets in lengths, checksums, types and payloads. Every record takes 136
  // to 140 bytes, so 500 of them end after offset 67000.
  for (uint64_t at : {0, 4, 5, 6, 30, 20000, 20001, 33000, 40004, 60000}) {
    for (uint8_t bit : {0x01, 0x04, 0x10, 0x80}) {
      INFO("offset " << at << " bit " << int{bit});
      FlipByte(wal, at, bit);
      RequireFailure(TakeStatus(tree / "db"), EndState::kCorrupt,
                     wals.back());
      FlipByte(wal, at, bit);
    }
  }
}

TEST_CASE("Snapshot by files accepts a changed MANIFEST only if RocksDB opens "
          "the database",
          "[snapshot][corruption]") {
  ScratchDir tree;
  MakeDatabase(tree / "db");
  std::string name = BytesOf(tree / "db/CURRENT");
  name.pop_back();
  const std::string manifest = tree / ("db/" + name);
  SnapshotOptions options;
  options.database_dir = tree / "db";
  options.as_files = true;
  const auto opens = [&tree] {
    std::filesystem::remove_all(tree / "copy");
    std::filesystem::copy(tree / "db", tree / "copy");
    std::unique_ptr<rocksdb::DB> db;
    return rocksdb::DB::OpenForReadOnly(Plain(), tree / "copy", IntoDb(&db))
        .ok();
  };
  REQUIRE_OK(TakeStatus(options));
  REQUIRE(opens());
  const uint64_t bytes = std::filesystem::file_size(manifest);
  int refused = 0;
  for (uint64_t at = 0; at < bytes; at += 3) {
    INFO("offset " << at);
    FlipByte(manifest, at, 0x40);
    const rocksdb::Status status = TakeStatus(options);
    INFO(status.ToString());
    CHECK(status.ok() == opens());
    if (!status.ok()) {
      RequireFailure(status, EndState::kCorrupt, name + ": MANIFEST: record");
      ++refused;
    }
    FlipByte(manifest, at, 0x40);
  }
  CHECK(refused > static_cast<int>(bytes / 6));
  // A crash leaves the begin of a record.
  std::filesystem::resize_file(manifest, bytes - 1);
  CHECK(opens());
  REQUIRE_OK(TakeStatus(options));
}

TEST_CASE("Snapshot accepts a WAL that ends in the middle of a record",
          "[snapshot]") {
  ScratchDir tree;
  {
    test::OpenDb db(Plain(), tree / "db");
    Fill(&db, 0, 0, 500);
  }
  const std::string wal = tree / ("db/" + FilesWith(tree / "db", ".log")[0]);
  std::filesystem::resize_file(wal, std::filesystem::file_size(wal) - 10);
  SnapshotOptions options;
  options.database_dir = tree / "db";
  std::unique_ptr<Snapshot> snapshot;
  REQUIRE_OK(Snapshot::Create(options, &snapshot));
  CHECK(ReadAll(*snapshot, "default").size() == 499);
}

TEST_CASE("Snapshot refuses files outside the database directory",
          "[snapshot]") {
  ScratchDir tree;
  rocksdb::Options options = Plain();
  SECTION("a second path") {
    options.db_paths = {{tree / "db", 1}, {tree / "big", 1ull << 40}};
  }
  SECTION("another first path") {
    options.db_paths = {{tree / "big", 1ull << 40}};
  }
  {
    test::OpenDb db(options, tree / "db");
    Fill(&db, 0, 0, 100);
    REQUIRE_OK(db->Flush(rocksdb::FlushOptions()));
    Fill(&db, 0, 0, 100);
    rocksdb::CompactRangeOptions compact;
    compact.bottommost_level_compaction =
        rocksdb::BottommostLevelCompaction::kForce;
    compact.target_path_id =
        static_cast<uint32_t>(options.db_paths.size() - 1);
    REQUIRE_OK(db->CompactRange(compact, nullptr, nullptr));
  }
  REQUIRE_FALSE(FilesWith(tree / "big", ".sst").empty());
  RequireFailure(TakeStatus(tree / "db"), EndState::kRefused, "db_paths");
}

TEST_CASE("Snapshot refuses an unknown comparator, unless it is given",
          "[snapshot]") {
  ScratchDir tree;
  const test::NamedComparator comparator("house.Comparator");
  rocksdb::Options house = Plain();
  house.comparator = &comparator;
  {
    test::OpenDb db(house, tree / "db",
              {{"default", Plain()}, {"house", house}, {"b", Plain()}});
    Fill(&db, 1, 0, 20);
    Fill(&db, 2, 0, 30);
    REQUIRE_OK(db->Flush(rocksdb::FlushOptions(), db.family(2)));
    Fill(&db, 2, 30, 40);
  }
  SnapshotOptions options;
  options.database_dir = tree / "db";
  const bool with_options_file = GENERATE(true, false);
  if (!with_options_file) {
    for (const std::string& name : NamesIn(tree / "db")) {
      if (name.rfind("OPTIONS-", 0) == 0) {
        std::filesystem::remove(tree / ("db/" + name));
      }
    }
  }
  RequireFailure(TakeStatus(options), EndState::kRefused, "house.Comparator");
  options.families = {"b"};
  std::unique_ptr<Snapshot> snapshot;
  REQUIRE_OK(Snapshot::Create(options, &snapshot));
  CHECK(snapshot->wal_not_flushed());
  CHECK(ReadAll(*snapshot, "b").size() == 40);
  options.max_read_only_wal_bytes = 100;
  RequireFailure(TakeStatus(options), EndState::kRefused, "house.Comparator");
  if (with_options_file) {
    options.families.clear();
    options.registry.comparators = {&comparator};
    REQUIRE_OK(Snapshot::Create(options, &snapshot));
    CHECK_FALSE(snapshot->wal_not_flushed());
    CHECK(ReadAll(*snapshot, "house").size() == 20);
  }
}

TEST_CASE("Snapshot of some families replays no WALs that only others need",
          "[snapshot]") {
  ScratchDir tree;
  const test::NamedComparator comparator("house.Comparator");
  rocksdb::Options house = Plain();
  house.comparator = &comparator;
  {
    test::OpenDb db(house, tree / "db",
                    {{"default", Plain()}, {"house", house}, {"b", Plain()}});
    Fill(&db, 1, 0, 20);  // not flushed, so the first WAL stays
    for (const size_t flushed : {size_t{0}, size_t{2}}) {
      Fill(&db, flushed, 0, 30);
      REQUIRE_OK(db->Flush(rocksdb::FlushOptions(), db.family(flushed)));
    }
    Fill(&db, 2, 30, 40);
  }
  SnapshotOptions options;
  options.database_dir = tree / "db";
  options.families = {"b"};
  std::unique_ptr<Snapshot> snapshot;
  REQUIRE_OK(Snapshot::Create(options, &snapshot));
  CHECK(ReadAll(*snapshot, "b").size() == 40);
}

TEST_CASE("Snapshot refuses keys with user-defined timestamps",
          "[snapshot]") {
  ScratchDir tree;
  rocksdb::Options stamped = Plain();
  REQUIRE_OK(rocksdb::Comparator::CreateFromString(
      rocksdb::ConfigOptions(), "leveldb.BytewiseComparator.u64ts",
      &stamped.comparator));
  { test::OpenDb db(stamped, tree / "db", {{"default", Plain()}, {"ts", stamped}}); }
  RequireFailure(TakeStatus(tree / "db"), EndState::kRefused, "'ts'");
  RequireFailure(TakeStatus(tree / "db"), EndState::kRefused, "timestamps");
}

TEST_CASE("Snapshot survives options that crash RocksDB", "[snapshot]") {
  ScratchDir tree;
  {
    test::OpenDb db(Plain(), tree / "db");
    Fill(&db, 0, 0, 10);
  }
  std::string path;
  for (const std::string& name : NamesIn(tree / "db")) {
    path = name.starts_with("OPTIONS-") ? (tree / "db") + "/" + name : path;
  }
  std::string text = BytesOf(path);
  for (const auto& [from, to] :
       {std::pair("table_cache_numshardbits=", "25"),
        std::pair("log_readahead_size=", "9000000000000000000")}) {
    const size_t at = text.find(from) + std::string(from).size();
    REQUIRE(at < text.size());
    text.replace(at, text.find('\n', at) - at, to);
  }
  WriteBytes(path, text);
  SnapshotOptions options;
  options.database_dir = tree / "db";
  std::unique_ptr<Snapshot> snapshot;
  REQUIRE_OK(Snapshot::Create(options, &snapshot));
  CHECK(ReadAll(*snapshot, "default").size() == 10);
}

TEST_CASE("Snapshot names a merge operator that this process does not have",
          "[snapshot]") {
  ScratchDir tree;
  rocksdb::Options house = Plain();
  house.merge_operator = std::make_shared<HouseMerge>();
  {
    test::OpenDb db(house, tree / "db");
    REQUIRE_OK(db->Merge(rocksdb::WriteOptions(), "k", "1"));
    REQUIRE_OK(db->Flush(rocksdb::FlushOptions()));
  }
  SnapshotOptions options;
  options.database_dir = tree / "db";
  std::unique_ptr<Snapshot> snapshot;
  REQUIRE_OK(Snapshot::Create(options, &snapshot));
  CHECK(snapshot->families()[0].unknown_merge_operator == "house.Merge");
  const std::unique_ptr<rocksdb::Iterator> it(
      snapshot->db()->NewIterator(rocksdb::ReadOptions()));
  it->SeekToFirst();
  CHECK_FALSE(it->status().ok());
  options.registry.merge_operators = {house.merge_operator};
  std::unique_ptr<Snapshot> known;
  REQUIRE_OK(Snapshot::Create(options, &known));
  CHECK(known->families()[0].unknown_merge_operator.empty());
  CHECK(ReadAll(*known, "default") == Entries{{"k", "1"}});
}

TEST_CASE("Snapshot refuses a WAL with operands that it cannot merge",
          "[snapshot]") {
  ScratchDir tree;
  rocksdb::Options house = Plain();
  house.merge_operator = std::make_shared<HouseMerge>();
  {
    test::OpenDb db(house, tree / "db", {{"default", Plain()}, {"house", house}});
    Fill(&db, 0, 0, 10);
    REQUIRE_OK(db->Put(rocksdb::WriteOptions(), db.family(1), "k", "1"));
    REQUIRE_OK(db->Merge(rocksdb::WriteOptions(), db.family(1), "k", "2"));
  }
  SnapshotOptions options;
  options.database_dir = tree / "db";
  RequireFailure(TakeStatus(options), EndState::kRefused, "house.Merge");
  options.families = {"default"};
  std::unique_ptr<Snapshot> snapshot;
  REQUIRE_OK(Snapshot::Create(options, &snapshot));
  CHECK(ReadAll(*snapshot, "default").size() == 10);
  options.families.clear();
  options.registry.merge_operators = {house.merge_operator};
  REQUIRE_OK(Snapshot::Create(options, &snapshot));
  CHECK(ReadAll(*snapshot, "house") == Entries{{"k", "1+2"}});
}

TEST_CASE("Snapshot says what to do if links are impossible", "[snapshot]") {
  struct stat here;
  struct stat shm;
  ScratchDir tree;
  if (stat("/dev/shm", &shm) != 0 || stat(tree.path().c_str(), &here) != 0 ||
      shm.st_dev == here.st_dev || access("/dev/shm", W_OK) != 0) {
    return;  // there is no second file system
  }
  MakeDatabase(tree / "db");
  SnapshotOptions options;
  options.database_dir = tree / "db";
  options.snapshot_dir = "/dev/shm";
  RequireFailure(TakeStatus(options), EndState::kSourceError,
                 "--snapshot-dir must be on the same file system");
}

}  // namespace
}  // namespace sstferry::snapshot_bad_source_test
