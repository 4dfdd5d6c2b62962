// Estimates of how much of a database is obsolete.
#include "pipeline/snapshot/chunk_estimate.h"

#include "sstferry/source.h"
#include "tests/support/catch.h"
#include "tests/support/named_comparator.h"
#include "tests/support/test_db.h"

namespace sstferry::test::chunk_estimate_test {
namespace {

constexpr int kKeys = 2000;

void PutAll(OpenDb* db, int seed, const std::string& family = "default") {
  for (int i = 0; i < kKeys; ++i) {
    db->Put(NumberedKey(i), RandomBytes(200, i + 7919 * seed), family);
  }
  db->Flush();
}

// Returns the share of the files' bytes that chunks would have.
double LiveShare(const std::string& path,
                 const std::vector<std::string>& families = {}) {
  ServedDatabase database;
  database.directory = path;
  DatabaseFacts facts;
  REQUIRE_OK(DescribeDatabase(database, {"", families, true}, &facts));
  REQUIRE(facts.bytes > 0);
  REQUIRE(facts.chunk_bytes <= facts.bytes);
  return static_cast<double>(facts.chunk_bytes) /
         static_cast<double>(facts.bytes);
}

// Makes a level with all keys, which compactions rewrote four times, and three
// tables above it with all keys again.
void Overwrite(OpenDb* db) {
  for (int round = 0; round < 5; ++round) {
    PutAll(db, round);
    db->Compact();
  }
  for (int round = 5; round < 8; ++round) PutAll(db, round);
}

TEST_CASE("A database is completely live if each key was written once",
          "[source][estimate]") {
  const ScratchDir dir;
  {
    OpenDb db(dir / "db", OneFamily(Quiet()));
    // Tables with overlapping bounds, but without a common key.
    for (int table = 0; table < 4; ++table) {
      for (int i = 0; i < kKeys; ++i) {
        db.Put(NumberedKey(4 * i + table), RandomBytes(200, i));
      }
      db.Flush();
    }
  }
  REQUIRE(LiveShare(dir / "db") > 0.99);
}

TEST_CASE("A database that was overwritten many times is partly obsolete",
          "[source][estimate]") {
  const ScratchDir dir;
  {
    OpenDb db(dir / "db", OneFamily(Quiet()));
    Overwrite(&db);
  }
  // 8 writes of each key left 4 entries, so a write became obsolete in half of
  // the cases. Half of the 3 upper tables counts as obsolete: 3/8 of all bytes.
  const double live = LiveShare(dir / "db");
  REQUIRE(live > 0.6);
  REQUIRE(live < 0.65);
}

TEST_CASE("Each deletion hides an entry", "[source][estimate]") {
  const ScratchDir dir;
  {
    OpenDb db(dir / "db", OneFamily(Quiet()));
    PutAll(&db, 1);
    for (int i = 0; i < kKeys; i += 2) db.Delete(NumberedKey(i));
    db.Flush();
  }
  const double live = LiveShare(dir / "db");
  REQUIRE(live > 0.6);
  REQUIRE(live < 0.7);
}

TEST_CASE("Only the requested families count", "[source][estimate]") {
  const ScratchDir dir;
  Families families = OneFamily(Quiet());
  families.emplace_back("users", Quiet());
  {
    OpenDb db(dir / "db", families);
    Overwrite(&db);
    PutAll(&db, 1, "users");
  }
  REQUIRE(LiveShare(dir / "db", {"users"}) > 0.99);
  REQUIRE(LiveShare(dir / "db", {"default"}) < 0.8);
}

TEST_CASE("If nothing is known about overwritten keys, all is live",
          "[source][estimate]") {
  const ScratchDir dir;
  static const NamedComparator order("an application's own order");
  rocksdb::ColumnFamilyOptions options = Quiet();
  SECTION("because the order is unknown") { options.comparator = &order; }
  SECTION("because FIFO compaction merges nothing") {
    options.compaction_style = rocksdb::kCompactionStyleFIFO;
  }
  {
    OpenDb db(dir / "db", OneFamily(options));
    for (int round = 0; round < 4; ++round) PutAll(&db, round);
    // Many writes of one key, so that most entries were dropped.
    for (int i = 0; i < 8 * kKeys; ++i) db.Put("the same", "key");
    db.Flush();
  }
  REQUIRE(LiveShare(dir / "db") > 0.99);
}

TEST_CASE("Obsolete values of blob files are not counted",
          "[source][estimate]") {
  const ScratchDir dir;
  rocksdb::ColumnFamilyOptions options = Quiet();
  options.enable_blob_files = true;
  {
    OpenDb db(dir / "db", OneFamily(options));
    PutAll(&db, 1);
    for (int i = 0; i < kKeys / 2; ++i) {
      db.Put(NumberedKey(i), RandomBytes(200, i + 1));
    }
    db.Flush();
    db.Compact();  // half of the first file is garbage now
  }
  const double live = LiveShare(dir / "db");
  REQUIRE(live > 0.6);
  REQUIRE(live < 0.75);
}

ManifestFile Table(uint64_t number, int level, uint64_t bytes,
                   const std::string& first, const std::string& last) {
  ManifestFile file;
  file.number = number;
  file.level = level;
  file.bytes = bytes;
  file.smallest = first + std::string(8, '\1');
  file.largest = last + std::string(8, '\1');
  return file;
}

TEST_CASE("A table is overlapped if lower tables may have some of its keys",
          "[source][estimate]") {
  ManifestFamily family;
  const auto add = [&family](const ManifestFile& file) {
    family.files[file.number] = file;
  };
  add(Table(1, 2, 100, "a", "f"));
  add(Table(2, 2, 100, "k", "p"));
  add(Table(3, 1, 10, "g", "j"));  // between them
  add(Table(4, 1, 20, "f", "f"));  // the last key of one
  add(Table(5, 0, 1, "a", "z"));
  add(Table(6, 0, 2, "q", "z"));   // larger, so it is taken
  family.comparator = "leveldb.BytewiseComparator";
  REQUIRE(OverlappedBytes(family) == 21);
  family.comparator = "an application's own order";
  REQUIRE(OverlappedBytes(family) == 0);
  for (auto& [number, file] : family.files) std::swap(file.smallest, file.largest);
  family.comparator = "rocksdb.ReverseBytewiseComparator";
  REQUIRE(OverlappedBytes(family) == 21);
}

}  // namespace
}  // namespace sstferry::test::chunk_estimate_test
