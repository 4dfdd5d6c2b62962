// Tests tables whose properties are less complete than their contents, as those
// of old RocksDB versions: 5.0 to 5.14 wrote no rocksdb.num.range-deletions.
#include <algorithm>

#include "format/rocksdb/sst_reader.h"
#include "tests/support/catch.h"
#include "tests/support/refreshed.h"
#include "tests/support/sample_database.h"
#include "tests/support/sst_files.h"
#include "tests/support/test_db.h"

namespace sstferry::test::old_tables_test {
namespace {

// Overwrites a table's properties with `bytes`, `offset` bytes after the start
// of `name`, and recomputes the block's checksum. `name` is the end of a
// property's name, because a block stores only the part of a name that differs
// from the previous one. Returns false if there is no such name.
bool ChangeProperty(const std::string& path, const std::string& name,
                    size_t offset, const std::string& bytes) {
  std::string file = BytesOf(path);
  SstBlockHandle handle;
  {
    const SliceSource source(file);
    SstReader reader;
    REQUIRE_OK(reader.Open(&source));
    handle = reader.FindMetaBlock(kSstPropertiesName)->handle;
  }
  const size_t at = file.find(name, handle.offset);
  if (at == std::string::npos || at > handle.offset + handle.size) {
    return false;
  }
  file.replace(at + offset, bytes.size(), bytes);
  Reseal(&file, handle);
  WriteBytes(path, file);
  return true;
}

std::string NewestTable(const std::string& dir) {
  const std::vector<std::string> tables = PathsWith(dir, ".sst");
  return *std::max_element(tables.begin(), tables.end());
}

// Adds a table without a count of its range deletions. It deletes a hundred
// keys.
void FillWithOldTable(const std::string& dir) {
  const std::string name = "ange-deletions";
  {
    OpenDb db(dir, OneFamily(Quiet()));
    db.DeleteRange(NumberedKey(200), NumberedKey(300));
    db.Put(NumberedKey(1), "changed");
    db.Flush();
  }
  REQUIRE(ChangeProperty(NewestTable(dir), name, name.size() - 1, "z"));
}

void FillOrdinary(const std::string& dir) {
  OpenDb db(dir, OneFamily(Quiet()));
  for (int i = 0; i < 1000; ++i) db.Put(NumberedKey(i), "value");
  db.Flush();
  db.Compact();
}

TEST_CASE("Range deletions that no property counts are in a seed",
          "[transfer][old]") {
  const ScratchDir dir;
  FillOrdinary(dir / "source");
  FillWithOldTable(dir / "source");
  PullOptions options;
  options.method = PullMethod::kIngest;
  options.verify = GENERATE(false, true);
  REQUIRE_OK(Ferry(dir / "source", dir / "target", options).status);
  REQUIRE(EntriesOf(dir / "target", OneFamily()).size() == 900);
  ExpectSameEntries(dir / "source", dir / "target");
}

TEST_CASE("Range deletions that no property counts are in a refresh in place",
          "[transfer][refresh][old]") {
  const ScratchDir dir;
  FillOrdinary(dir / "source");
  REQUIRE_OK(Refresh(dir / "source", dir / "target").status);
  FillWithOldTable(dir / "source");
  PullOptions options;
  options.verify = GENERATE(false, true);
  const Ferried refreshed = Refresh(dir / "source", dir / "target", options);
  REQUIRE_OK(refreshed.status);
  REQUIRE(EntriesOf(dir / "target", OneFamily()).size() == 900);
  ExpectSameEntries(dir / "source", dir / "target");
}

TEST_CASE(
    "A SingleDelete is found where fewer deletions are counted than range "
    "deletions",
    "[transfer][refresh][old]") {
  const ScratchDir dir;
  FillOrdinary(dir / "source");
  REQUIRE_OK(Refresh(dir / "source", dir / "target").status);
  {
    OpenDb db(dir / "source", OneFamily(Quiet()));
    db.DeleteRange(NumberedKey(200), NumberedKey(300));
    db.DeleteRange(NumberedKey(400), NumberedKey(500));
    REQUIRE_OK(db->SingleDelete({}, NumberedKey(5)));
    db.Flush();
  }
  // RocksDB 5.15 counted range deletions, but did not include them in the
  // number of deletions.
  const std::string name = "eleted.keys";
  REQUIRE(ChangeProperty(NewestTable(dir / "source"), name, name.size(),
                         "\x01"));
  const Ferried refused = Refresh(dir / "source", dir / "target");
  INFO(refused.message());
  REQUIRE(refused.state() == EndState::kRefused);
  REQUIRE(refused.message().find("holds a SingleDelete") != std::string::npos);
}

}  // namespace
}  // namespace sstferry::test::old_tables_test
