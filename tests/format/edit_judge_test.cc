#include "format/rocksdb/edit_judge.h"

#include <algorithm>
#include <map>

#include "format/rocksdb/manifest_reader.h"
#include "rocksdb/convenience.h"
#include "rocksdb/db.h"
#include "rocksdb/sst_file_writer.h"
#include "tests/support/catch.h"
#include "tests/support/log_bytes.h"
#include "tests/support/test_db.h"

namespace sstferry::edit_judge_test {
namespace {

std::string Internal(const std::string& key) {
  return key + std::string(8, '\0');
}

ManifestFile Table(uint64_t number, const std::string& smallest,
                   const std::string& largest, uint64_t first,
                   uint64_t last) {
  ManifestFile file;
  file.number = number;
  file.smallest = Internal(smallest);
  file.largest = Internal(largest);
  file.smallest_sequence = first;
  file.largest_sequence = last;
  file.epoch = 5;
  return file;
}

// Returns the state of a database with two tables in level 0.
ManifestState TwoTables() {
  ManifestState state;
  ManifestFamily& family = state.families[0];
  family.name = "default";
  family.comparator = "leveldb.BytewiseComparator";
  family.files[1] = Table(1, "b", "m", 10, 20);
  family.files[2] = Table(2, "f", "t", 21, 30);
  return state;
}

VersionEdit Compaction() {
  VersionEdit edit;
  edit.deleted_files = {{0, 1}, {0, 2}};
  edit.new_files.push_back(Table(3, "b", "t", 0, 30));
  edit.new_files.back().level = 1;
  return edit;
}

EditKind Judge(const VersionEdit& edit, const ManifestState& state) {
  std::string why;
  const EditKind kind = JudgeEdit(edit, state, &why);
  REQUIRE((kind == EditKind::kBarrier) == !why.empty());
  return kind;
}

// Counts the edits of each kind in a database's MANIFEST. Ignores the first
// `skipped` edits.
std::map<EditKind, int> KindsIn(const std::string& directory, size_t* skipped) {
  std::map<EditKind, int> kinds;
  size_t edits = 0;
  ManifestReader reader([&](const VersionEdit& edit,
                            const ManifestState& before) {
    if (++edits > *skipped) ++kinds[Judge(edit, before)];
  });
  for (const std::string& record :
       test::Follow(test::ManifestBytes(directory), LogKind::kManifest)
           .records) {
    REQUIRE_OK(reader.Add(record));
  }
  *skipped = edits;
  return kinds;
}

}  // namespace

TEST_CASE("A compaction adds nothing but what it removes", "[format]") {
  const ManifestState state = TwoTables();
  REQUIRE(Judge(Compaction(), state) == EditKind::kCompaction);
  VersionEdit edit = Compaction();
  SECTION("newer entries") { edit.new_files[0].largest_sequence = 31; }
  SECTION("a smaller key") { edit.new_files[0].smallest = Internal("a"); }
  SECTION("a larger key") { edit.new_files[0].largest = Internal("u"); }
  SECTION("another epoch") { edit.new_files[0].epoch = 6; }
  SECTION("tables only removed") { edit.new_files.clear(); }
  SECTION("missing tables") { edit.deleted_files[0].second = 9; }
  SECTION("another family's tables") { edit.family_id = 7; }
  SECTION("something unknown") { edit.has_unknown = true; }
  REQUIRE(Judge(edit, state) == EditKind::kBarrier);
}

TEST_CASE("Keys of a reverse comparator are compared in its order",
          "[format]") {
  ManifestState state = TwoTables();
  ManifestFamily& family = state.families[0];
  family.comparator = "rocksdb.ReverseBytewiseComparator";
  family.files[1] = Table(1, "m", "b", 10, 20);
  family.files[2] = Table(2, "t", "f", 21, 30);
  VersionEdit edit = Compaction();
  edit.new_files[0] = Table(3, "t", "b", 10, 30);
  REQUIRE(Judge(edit, state) == EditKind::kCompaction);
  edit.new_files[0].smallest = Internal("u");
  REQUIRE(Judge(edit, state) == EditKind::kBarrier);
}

TEST_CASE("A flush says which WALs its tables make obsolete", "[format]") {
  VersionEdit edit;
  edit.log_number = 12;
  edit.new_files.push_back(Table(3, "a", "z", 31, 40));
  REQUIRE(Judge(edit, TwoTables()) == EditKind::kFlush);
  SECTION("an ingestion has no WAL number") { edit.log_number.reset(); }
  SECTION("another level than 0") { edit.new_files[0].level = 1; }
  SECTION("garbage in blobs") { edit.blob_garbage.emplace_back(); }
  REQUIRE(Judge(edit, TwoTables()) == EditKind::kBarrier);
}

TEST_CASE("Edits of numbers alone are bookkeeping, all others are barriers",
          "[format]") {
  VersionEdit edit;
  edit.next_file = 9;
  edit.last_sequence = 40;
  edit.log_number = 12;
  edit.min_log_number_to_keep = 8;
  edit.wal_additions.emplace_back(12, 100);
  REQUIRE(Judge(edit, TwoTables()) == EditKind::kBookkeeping);
  SECTION("a family added") { edit.adds_family = true; }
  SECTION("a family dropped") { edit.drops_family = true; }
  SECTION("the start of a MANIFEST") { edit.comparator = "c"; }
  SECTION("a database id") { edit.database_id = "id"; }
  SECTION("full_history_ts_low") { edit.full_history_ts_low = "low"; }
  SECTION("blobs without tables") { edit.blob_additions.emplace_back(); }
  SECTION("a previous WAL") { edit.prev_log_number = 3; }
  SECTION("something unknown") { edit.has_unknown = true; }
  REQUIRE(Judge(edit, TwoTables()) == EditKind::kBarrier);
}

TEST_CASE(
    "RocksDB's own records are classified by the operation that wrote them",
    "[format][rocksdb]") {
  const ScratchDir dir;
  rocksdb::ColumnFamilyOptions blobs = test::Quiet();
  blobs.enable_blob_files = true;
  test::Families families = test::OneFamily(test::Quiet());
  families.emplace_back("blobs", blobs);
  rocksdb::DBOptions options;
  options.create_if_missing = true;
  options.atomic_flush = GENERATE(false, true);
  test::OpenDb db(dir / "db", families, options);
  size_t edits = 0;
  REQUIRE(KindsIn(dir / "db", &edits)[EditKind::kBarrier] > 0);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 50; ++i) {
      db.Put(test::NumberedKey(i), std::string(100, 'v'), "default");
      db.Put(test::NumberedKey(i), std::string(100, 'v'), "blobs");
    }
    db.Flush();
  }
  std::map<EditKind, int> kinds = KindsIn(dir / "db", &edits);
  REQUIRE(kinds[EditKind::kFlush] >= 6);
  REQUIRE(kinds[EditKind::kBarrier] == 0);
  db.Compact("default");
  db.Compact("blobs");
  kinds = KindsIn(dir / "db", &edits);
  REQUIRE(kinds[EditKind::kCompaction] >= 2);
  REQUIRE(kinds[EditKind::kBarrier] == 0);

  rocksdb::SstFileWriter writer({}, {});
  REQUIRE_OK(writer.Open(dir / "1.sst"));
  REQUIRE_OK(writer.Put("ingested", "value"));
  REQUIRE_OK(writer.Finish());
  REQUIRE_OK(db->IngestExternalFile(db.cf(), {dir / "1.sst"}, {}));
  REQUIRE(KindsIn(dir / "db", &edits)[EditKind::kBarrier] == 1);
  REQUIRE_OK(rocksdb::DeleteFilesInRange(
      db.operator->(), db.cf(), nullptr, nullptr));
  REQUIRE(KindsIn(dir / "db", &edits)[EditKind::kBarrier] == 1);
  REQUIRE_OK(db->DropColumnFamily(db.cf("blobs")));
  REQUIRE(KindsIn(dir / "db", &edits)[EditKind::kBarrier] == 1);
}

}  // namespace sstferry::edit_judge_test
