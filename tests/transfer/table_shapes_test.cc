// Tests that tables of every kind arrive usable, by both methods.
#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/convenience.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/table.h"
#include "tests/support/catch.h"
#include "tests/support/compacted.h"

namespace sstferry::test::table_shapes_test {
namespace {

using rocksdb::BlockBasedTableOptions;
using rocksdb::ColumnFamilyOptions;

struct Shape {
  std::string name;
  ColumnFamilyOptions options;
  size_t value_bytes = 200;  // 0: sizes up to 3 MB
};

void AddTable(const std::string& name, const BlockBasedTableOptions& table,
              std::vector<Shape>* shapes) {
  shapes->push_back({name, WithTable(table), 200});
}

std::vector<Shape> TableShapes() {
  std::vector<Shape> shapes;
  for (const auto type : {rocksdb::kCRC32c, rocksdb::kxxHash,
                          rocksdb::kxxHash64, rocksdb::kXXH3}) {
    for (uint32_t version = kMinTableFormatVersion;
         version <= kMaxTableFormatVersion; ++version) {
      BlockBasedTableOptions table;
      table.checksum = type;
      table.format_version = version;
      table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
      AddTable("checksum " + std::to_string(type) + " version " +
                   std::to_string(version),
               table, &shapes);
    }
  }
  BlockBasedTableOptions table;
  table.filter_policy.reset(rocksdb::NewRibbonFilterPolicy(10));
  AddTable("ribbon filter", table, &shapes);
  table.index_type = BlockBasedTableOptions::kTwoLevelIndexSearch;
  table.partition_filters = true;
  table.metadata_block_size = 512;
  AddTable("partitioned filter and index", table, &shapes);
  table.partition_filters = false;
  AddTable("partitioned index", table, &shapes);
  table = BlockBasedTableOptions();
  table.index_type = BlockBasedTableOptions::kBinarySearchWithFirstKey;
  AddTable("first keys in the index", table, &shapes);
  table = BlockBasedTableOptions();
  table.data_block_index_type =
      BlockBasedTableOptions::kDataBlockBinaryAndHash;
  table.data_block_hash_table_util_ratio = 0.75;
  AddTable("hash index in blocks", table, &shapes);
  table = BlockBasedTableOptions();
  table.enable_index_compression = false;
  table.index_block_restart_interval = 8;
  table.block_restart_interval = 1;
  table.block_size = 300;
  AddTable("small blocks", table, &shapes);
  table = BlockBasedTableOptions();
  table.block_align = true;
  AddTable("aligned blocks", table, &shapes);
  return shapes;
}

std::vector<Shape> PrefixShapes() {
  std::vector<Shape> shapes;
  ColumnFamilyOptions options = SmallFiles();
  options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(5));
  BlockBasedTableOptions table;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.whole_key_filtering = false;
  shapes.push_back({"prefix filter", WithTable(table, options), 200});
  table.index_type = BlockBasedTableOptions::kHashSearch;
  shapes.push_back({"hash search", WithTable(table, options), 200});
  return shapes;
}

std::vector<Shape> CompressionShapes() {
  std::vector<Shape> shapes;
  for (const auto type : rocksdb::GetSupportedCompressions()) {
    ColumnFamilyOptions options = SmallFiles();
    options.compression = type;
    shapes.push_back({"compression " + std::to_string(type), options, 200});
  }
  ColumnFamilyOptions options = SmallFiles();
  options.compression = rocksdb::kZSTD;
  options.compression_opts.max_dict_bytes = 4096;
  options.compression_opts.zstd_max_train_bytes = 64 << 10;
  shapes.push_back({"zstd with a dictionary", options, 200});
  options = SmallFiles();
  options.compression = rocksdb::kNoCompression;
  options.bottommost_compression = rocksdb::kZSTD;
  shapes.push_back({"bottommost compression", options, 200});
  return shapes;
}

std::vector<Shape> FamilyShapes() {
  std::vector<Shape> shapes;
  ColumnFamilyOptions options = SmallFiles();
  options.comparator = rocksdb::ReverseBytewiseComparator();
  shapes.push_back({"reverse order", options, 200});
  options = SmallFiles();
  options.compaction_style = rocksdb::kCompactionStyleUniversal;
  options.num_levels = 4;
  shapes.push_back({"universal", options, 200});
  options = SmallFiles();
  options.level_compaction_dynamic_level_bytes = true;
  shapes.push_back({"dynamic levels", options, 200});
  options = SmallFiles();
  options.optimize_filters_for_hits = true;
  BlockBasedTableOptions table;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  shapes.push_back(
      {"no filters in the last level", WithTable(table, options), 200});
  options = SmallFiles();
  options.target_file_size_base = 8 << 20;
  shapes.push_back({"blocks larger than any buffer", options, 0});
  return shapes;
}

void Fill(const std::string& dir, const Shape& shape) {
  OpenDb db(dir, OneFamily(shape.options));
  // Values are half random and half repeated bytes, so that they compress to
  // about half.
  const uint64_t count = shape.value_bytes == 0 ? 12 : 900;
  for (uint64_t i = 0; i < count; ++i) {
    const size_t bytes =
        shape.value_bytes == 0 ? i * i * 26'000 : shape.value_bytes;
    db.Put(NumberedKey(i * 7919 % 100'000),
           RandomBytes(bytes / 2, i) + std::string(bytes / 2, 'v'));
  }
  db.Flush();
  db.Compact();
}

// Requires that a pull by chunks and a clone are both correct.
void RequireMoved(const Shape& shape) {
  INFO(shape.name);
  const ScratchDir dir;
  Fill(dir / "source", shape);
  Expectation expected;
  expected.families = OneFamily(shape.options);
  PullOptions options;
  options.verify = true;
  options.method = PullMethod::kIngest;
  const Ferried moved = Ferry(dir / "source", dir / "ingested", options);
  INFO(moved.message());
  REQUIRE_OK(moved.status);
  ExpectEqual(dir / "source", dir / "ingested", expected);
  RequireUsable(dir / "source", dir / "ingested", expected.families);
  options.method = PullMethod::kClone;
  const Ferried cloned = Ferry(dir / "source", dir / "cloned", options);
  INFO(cloned.message());
  REQUIRE_OK(cloned.status);
  REQUIRE(cloned.summary.chunks_unchecked == 0);
  RequireUsable(dir / "source", dir / "cloned", expected.families);
}

}  // namespace

TEST_CASE("Tables of every checksum, version, filter and index are moved",
          "[transfer][shapes]") {
  for (const Shape& shape : TableShapes()) RequireMoved(shape);
}

TEST_CASE("Tables with prefixes are moved", "[transfer][shapes]") {
  for (const Shape& shape : PrefixShapes()) RequireMoved(shape);
}

TEST_CASE("Tables of every compression are moved", "[transfer][shapes]") {
  for (const Shape& shape : CompressionShapes()) RequireMoved(shape);
}

TEST_CASE("Families of every order and layout are moved",
          "[transfer][shapes]") {
  for (const Shape& shape : FamilyShapes()) RequireMoved(shape);
}

}  // namespace sstferry::test::table_shapes_test
