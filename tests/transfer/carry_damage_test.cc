// A carried file that is damaged on the source's disk, and what must not be
// carried although its metadata looks harmless.
#include <filesystem>
#include <fstream>

#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/table.h"
#include "rocksdb/utilities/options_util.h"
#include "tests/support/carried.h"
#include "tests/support/catch.h"

namespace sstferry::test {
namespace {

namespace fs = std::filesystem;

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void Write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

void RequireFailsNaming(const TempDir& dir, const std::string& name) {
  const Ferried moved =
      Ferry(dir / "source", dir / "target", Carrying(CarryMode::kOnly));
  INFO(moved.message());
  REQUIRE((moved.state() == EndState::kCorrupt ||
           moved.state() == EndState::kSourceError));
  REQUIRE(moved.message().find(name) != std::string::npos);
  REQUIRE_FALSE(fs::exists(dir / "target"));
  fs::remove_all(dir / "target.sstferry");
}

}  // namespace

TEST_CASE("A flipped bit anywhere in a carried file fails the pull by its name",
          "[transfer][carry][corruption]") {
  const TempDir dir;
  rocksdb::BlockBasedTableOptions table;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  rocksdb::ColumnFamilyOptions options = SmallFiles();
  SECTION("plain") {}
  SECTION("partitioned, XXH3") {
    table.index_type =
        rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
    table.partition_filters = true;
    table.metadata_block_size = 1024;
    table.checksum = rocksdb::kXXH3;
  }
  SECTION("compressed") { options.compression = rocksdb::kZSTD; }
  SECTION("aligned") {
    table.block_align = true;
    options.compression = rocksdb::kNoCompression;
  }
  {
    OpenDb db(dir / "source", OneFamily(WithTable(table, options)));
    FillCompacted(&db, 0, 300);
  }
  const std::string path = PathsWith(dir / "source", ".sst").at(0);
  const std::string name = fs::path(path).filename();
  const std::string good = Contents(path);
  // Every region: data, filter, index, properties, metaindex, footer.
  for (size_t i = 0; i < 60; ++i) {
    const size_t at = i * (good.size() - 1) / 59;
    INFO("byte " << at << " of " << good.size());
    std::string bad = good;
    bad[at] ^= static_cast<char>(1 << (i % 8));
    Write(path, bad);
    RequireFailsNaming(dir, name);
  }
  Write(path, good);
  REQUIRE_OK(
      Ferry(dir / "source", dir / "target", Carrying(CarryMode::kOnly)).status);
}

TEST_CASE("A flipped bit in a block larger than the buffer is found",
          "[transfer][carry][corruption]") {
  const TempDir dir;
  // In one file, the large block neither the first nor the last of it.
  rocksdb::ColumnFamilyOptions options = SmallFiles();
  options.target_file_size_base = 64 << 20;
  {
    OpenDb db(dir / "source", OneFamily(options));
    db.Put("a", RandomBytes(5000, 1));
    db.Put("b", RandomBytes(3 << 20, 1));
    db.Put("c", "small");
    db.Flush();
    db.Compact();
  }
  for (const std::string& path : PathsWith(dir / "source", ".sst")) {
    std::string bad = Contents(path);
    if (bad.size() > (2 << 20)) {
      bad[2'000'000] ^= 4;
      Write(path, bad);
      RequireFailsNaming(dir, fs::path(path).filename());
      return;
    }
  }
  FAIL("no large file");
}

TEST_CASE("A carried file that is cut short fails the pull by its name",
          "[transfer][carry][corruption]") {
  const TempDir dir;
  {
    OpenDb db(dir / "source", OneFamily(SmallFiles()));
    FillCompacted(&db, 0, 300);
  }
  const std::string path = PathsWith(dir / "source", ".sst").at(0);
  fs::resize_file(path, fs::file_size(path) - 1);
  RequireFailsNaming(dir, fs::path(path).filename());
}

TEST_CASE("Files with blob references, operands or deletions are rebuilt",
          "[transfer][carry]") {
  const TempDir dir;
  rocksdb::ColumnFamilyOptions blobs = SmallFiles();
  blobs.enable_blob_files = true;
  blobs.min_blob_size = 64;
  const Families families = {{"default", SmallFiles()}, {"blobs", blobs}};
  {
    OpenDb db(dir / "source", families);
    FillCompacted(&db, 0, 300, "blobs");
    FillCompacted(&db, 0, 300);
  }
  const Ferried moved = Ferry(dir / "source", dir / "target");
  REQUIRE_OK(moved.status);
  const std::string items = ItemsText(PlanOf(dir / "source"));
  INFO(items);
  REQUIRE(items.find("rebuild refers to blob files") != std::string::npos);
  REQUIRE(moved.summary.chunks_carried > 0);
  REQUIRE(moved.summary.chunks_built > 0);
  Expectation expected;
  expected.families = families;
  ExpectSameEntries(dir / "source", dir / "target", expected);
}

TEST_CASE("Wide-column entities are carried with all their columns, or refused",
          "[transfer][carry]") {
  const TempDir dir;
  {
    OpenDb db(dir / "source", OneFamily(SmallFiles()));
    for (uint64_t i = 0; i < 400; ++i) {
      db.Put(NumberedKey(i), RandomBytes(100, i));
    }
    // Far from the first and the last block.
    const rocksdb::WideColumns columns = {{"", "x"}, {"color", "red"}};
    REQUIRE_OK(db->PutEntity({}, db.cf(), NumberedKey(200), columns));
    db.Flush();
    db.Compact();
  }
  const Ferried moved =
      Ferry(dir / "source", dir / "target", Carrying(CarryMode::kOnly));
  INFO(moved.message());
  if (kIngestsEntities) {
    REQUIRE_OK(moved.status);
    ExpectSameEntries(dir / "source", dir / "target");
  } else {
    REQUIRE(moved.state() == EndState::kRefused);
    REQUIRE(moved.message().find("wide-column entities") !=
            std::string::npos);
  }
}

}  // namespace sstferry::test
