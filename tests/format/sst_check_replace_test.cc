// Chunks that replace an interval: what CheckChunk() lets pass and what not.
#include "format/sst/sst_check.h"
#include "rocksdb/sst_file_writer.h"
#include "tests/support/catch.h"
#include "tests/support/sst_files.h"

namespace sstferry {
namespace {

using rocksdb::Status;
using test::InternalKey;

constexpr uint8_t kDeletion = 0;
constexpr uint8_t kRangeDeletion = 15;

struct Tile {
  std::string smallest;
  std::string largest;
  bool clears = true;
  bool deletes_last = false;
  test::KeyValues entries;
};

std::string WriteTile(const test::SstShape& shape, const Tile& tile) {
  const std::unique_ptr<rocksdb::Env> env = test::NewMemoryEnv();
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(),
                                shape.ToOptions(env.get()));
  REQUIRE_OK(writer.Open("/f.sst"));
  if (tile.clears) {
    REQUIRE_OK(writer.DeleteRange(tile.smallest, tile.largest));
  }
  for (const auto& [key, value] : tile.entries) {
    REQUIRE_OK(writer.Put(key, value));
  }
  if (tile.deletes_last) {
    REQUIRE_OK(writer.Delete(tile.largest));
  }
  REQUIRE_OK(writer.Finish());
  return test::ReadWhole(env.get(), "/f.sst");
}

ChunkExpectation ExpectTile(const test::SstShape& shape, const Tile& tile) {
  ChunkExpectation expected = test::Expect(
      shape, tile.entries.empty() ? test::KeyValues{{"", ""}} : tile.entries);
  expected.num_entries = tile.entries.size();
  expected.smallest = tile.smallest;
  expected.largest = tile.largest;
  expected.clears = tile.clears;
  expected.deletes_last = tile.deletes_last;
  return expected;
}

void RequireRefused(const std::string& file, ChunkExpectation expected,
                    const std::string& why) {
  for (const bool all_blocks : {false, true}) {
    expected.all_blocks = all_blocks;
    const Status s = CheckChunk(SliceSource(file), expected, nullptr);
    INFO(s.ToString());
    REQUIRE(s.IsCorruption());
    REQUIRE(s.ToString().find(why) != std::string::npos);
  }
}

TEST_CASE("CheckChunk accepts every kind of tile in every table shape",
          "[format][sst]") {
  const test::KeyValues some = test::SampleEntries(300);
  const std::string first = some.front().first;
  const std::string last = some.back().first;
  const std::vector<Tile> tiles = {
      {"", last + "x", true, true, some},            // and with a deletion
      {"", last + "x", true, false, some},           // where there is no last
      {"", "zzz", true, false, {}},                  // nothing but cleared
      {"", "zzz", true, true, {}},
      {"k", "k", false, true, {}},                   // one key
      {first, first, false, false, {some.front()}},
  };
  for (const uint32_t version : test::WritableVersions()) {
    for (const auto index :
         {rocksdb::BlockBasedTableOptions::kBinarySearch,
          rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch,
          rocksdb::BlockBasedTableOptions::kBinarySearchWithFirstKey}) {
      test::SstShape shape;
      shape.format_version = version;
      shape.index = index;
      for (size_t i = 0; i < tiles.size(); ++i) {
        INFO(shape.Name() << " tile " << i);
        const std::string file = WriteTile(shape, tiles[i]);
        ChunkExpectation expected = ExpectTile(shape, tiles[i]);
        ChunkFacts facts;
        REQUIRE_OK(CheckChunk(SliceSource(file), expected, &facts));
        expected.all_blocks = true;
        REQUIRE_OK(CheckChunk(SliceSource(file), expected, &facts));
      }
    }
  }
}

TEST_CASE("CheckChunk refuses a value at the end of a range deletion",
          "[format][sst]") {
  // SingleDelete of that key would bring back what it had replaced.
  const test::SstShape shape;
  for (const char* largest : {"d", "c"}) {
    const Tile tile = {"b", largest, true, false, {{"c", "1"}, {"d", "2"}}};
    RequireRefused(WriteTile(shape, tile), ExpectTile(shape, tile),
                   "last key: expected one before the end");
  }
}

TEST_CASE("CheckChunk refuses a tile that is not the announced one",
          "[format][sst]") {
  const test::SstShape shape;
  const Tile tile = {"b", "k", true, true, {{"c", "1"}, {"d", "2"}}};
  const std::string file = WriteTile(shape, tile);
  const auto refused = [&](auto change, const std::string& why) {
    ChunkExpectation expected = ExpectTile(shape, tile);
    expected.key_bytes.reset();
    change(&expected);
    RequireRefused(file, expected, why);
  };
  refused([](auto* e) { e->smallest = std::string(1, 'a'); },
          "range deletion: expected just one, from 0x61");
  refused([](auto* e) { e->largest = std::string(1, 'l'); },
          "range deletion: expected just one");
  refused([](auto* e) { e->clears = false, e->num_entries = 3; },
          "deletions: expected 1, found 2");
  refused([](auto* e) { e->deletes_last = false, e->num_entries = 3; },
          "deletions: expected 1, found 2");
  refused([](auto* e) { e->key_bytes = 3; }, "raw key bytes");
  ChunkExpectation expected = ExpectTile(shape, tile);
  expected.key_bytes = 2;
  REQUIRE_OK(CheckChunk(SliceSource(file), expected, nullptr));
}

// A raw table of the tile [b, k]; what is wrong with it, SstFileWriter would
// not write.
struct RawTile {
  std::vector<test::KeyValues> blocks = {{{InternalKey("c"), "1"}},
                                         {{InternalKey("d"), "2"}},
                                         {{InternalKey("k", kDeletion), ""}}};
  std::vector<std::string> separators = {"c", "d", "k"};
  uint8_t deletions = 2;
  test::KeyValues range = {{InternalKey("b", kRangeDeletion), "k"}};

  std::string File() const {
    return test::RawTable(
        blocks, separators, 5,
        {{"rocksdb.deleted.keys", std::string(1, deletions)}}, range);
  }
  static ChunkExpectation Expected() {
    ChunkExpectation expected =
        ExpectTile({}, {"b", "k", true, true, {{"c", "1"}, {"d", "2"}}});
    expected.key_bytes.reset();
    expected.comparator.clear();
    return expected;
  }
};

TEST_CASE("CheckChunk refuses tiles that only an enemy writes",
          "[format][sst]") {
  const auto refused = [](auto change, const std::string& why) {
    RawTile tile;
    change(&tile);
    RequireRefused(tile.File(), RawTile::Expected(), why);
  };
  REQUIRE_OK(
      CheckChunk(SliceSource(RawTile().File()), RawTile::Expected(), nullptr));
  refused([](RawTile* t) { t->range.clear(); }, "entries: expected 2, found 1");
  refused([](RawTile* t) { t->range[0].second = "l"; }, "just one");
  refused([](RawTile* t) { t->range[0].first = InternalKey("a", 15); },
          "just one");
  refused([](RawTile* t) { t->range[0].first = InternalKey("b", 15, 1); },
          "just one");
  refused([](RawTile* t) { t->range[0].first = InternalKey("b", 1); },
          "just one");
  refused([](RawTile* t) { t->range[0].first = "b"; }, "just one");
  refused([](RawTile* t) { t->blocks[0][0].first = InternalKey("c", 0); },
          "sequence 0 and a value's type");
  refused([](RawTile* t) { t->blocks[2][0].first = InternalKey("k"); },
          "last entry: expected a deletion");
  refused([](RawTile* t) { t->blocks[0][0].first = InternalKey("a"); },
          "first key");
  refused(
      [](RawTile* t) {
        t->blocks[2][0].first = InternalKey("l");
        t->separators[2] = "l";
      },
      "last key");
}

TEST_CASE("CheckChunk counts range deletions in their block",
          "[format][sst]") {
  // Two of them, counted as one.
  RawTile tile;
  tile.range.emplace_back(InternalKey("x", kRangeDeletion), "z");
  const std::string file =
      test::RawTable(tile.blocks, tile.separators, 5,
                     {{"rocksdb.deleted.keys", "\2"},
                      {"rocksdb.num.entries", "\4"},
                      {"rocksdb.num.range-deletions", "\1"}},
                     tile.range);
  RequireRefused(file, RawTile::Expected(), "found another behind it");
}

TEST_CASE("CheckChunk sees a deletion in the middle when it reads every block",
          "[format][sst]") {
  RawTile tile;
  tile.blocks[1][0].first = InternalKey("d", kDeletion);
  ChunkExpectation expected = RawTile::Expected();
  expected.all_blocks = true;
  const Status s = CheckChunk(SliceSource(tile.File()), expected, nullptr);
  REQUIRE(s.IsCorruption());
  // Counted honestly, it is seen without.
  tile.deletions = 3;
  RequireRefused(tile.File(), RawTile::Expected(), "deletions: expected 2");
}

TEST_CASE("CheckChunk refuses a backward range deletion", "[format][sst]") {
  RawTile tile;
  tile.range = {{InternalKey("k", kRangeDeletion), "b"}};
  tile.blocks.clear();
  tile.separators.clear();
  tile.deletions = 1;
  ChunkExpectation expected = RawTile::Expected();
  expected.num_entries = 0;
  expected.deletes_last = false;
  expected.smallest = "k";
  expected.largest = "b";
  RequireRefused(tile.File(), expected, "a begin before its end");
}

}  // namespace
}  // namespace sstferry
