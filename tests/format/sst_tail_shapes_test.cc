// Every shape of table that RocksDB writes: carried, ingested, read back,
// compacted, and carried again.
#include "format/sst/sst_check.h"
#include "format/sst/sst_tail.h"
#include "rocksdb/comparator.h"
#include "rocksdb/convenience.h"
#include "rocksdb/db.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/table_properties.h"
#include "tests/support/carried_sst.h"
#include "tests/support/catch.h"

namespace sstferry {
namespace {

using rocksdb::BlockBasedTableOptions;
using rocksdb::Slice;
using rocksdb::Status;
using test::KeyValues;
using test::PlainShape;
using test::TableShape;

ChunkExpectation ExpectCarried(const TableShape& shape) {
  const KeyValues entries = test::InOrder(shape);
  ChunkExpectation expected = test::Expect(test::SstShape(), entries);
  expected.format_version = shape.table.format_version;
  expected.comparator = shape.options.comparator->Name();
  expected.order = [&shape](const Slice& a, const Slice& b) {
    return shape.options.comparator->Compare(a, b);
  };
  expected.all_blocks = true;
  return expected;
}

void RequireCarries(const TableShape& shape, const std::string& file) {
  INFO(shape.name << ", format version " << shape.table.format_version
                  << ", checksum " << shape.table.checksum);
  const std::string carried = test::Carried(file);
  REQUIRE_OK(CheckChunk(SliceSource(carried), ExpectCarried(shape), nullptr));
  const KeyValues entries = test::InOrder(shape);
  const std::string ingested = test::RequireIngests(shape, carried, entries);
  REQUIRE(ingested == carried);
  // A copy of a copy of a copy.
  REQUIRE(test::Carried(ingested) == carried);
  REQUIRE(test::Carried(test::Carried(ingested)) == carried);
}

void RequireCarries(const TableShape& shape) {
  RequireCarries(shape, test::WriteDbFile(shape));
}

void RequireCarriesInEveryVersion(TableShape shape) {
  for (const uint32_t version : test::WritableVersions()) {
    shape.table.format_version = version;
    RequireCarries(shape);
  }
}

// The filters, as options of a table.
enum class Filter { kNone, kFull, kRibbon, kPartitioned, kPartitionedRibbon };

TableShape WithFilter(TableShape shape, Filter filter) {
  const bool ribbon =
      filter == Filter::kRibbon || filter == Filter::kPartitionedRibbon;
  if (filter != Filter::kNone) {
    shape.table.filter_policy.reset(ribbon
                                        ? rocksdb::NewRibbonFilterPolicy(10)
                                        : rocksdb::NewBloomFilterPolicy(10));
  }
  if (filter == Filter::kPartitioned ||
      filter == Filter::kPartitionedRibbon) {
    shape.table.partition_filters = true;
    shape.table.index_type = BlockBasedTableOptions::kTwoLevelIndexSearch;
  }
  shape.name += ", filter " + std::to_string(static_cast<int>(filter));
  return shape;
}

SstProperties PropertiesOf(const std::string& file) {
  const SliceSource source(file);
  SstReader reader;
  REQUIRE_OK(reader.Open(&source));
  return reader.properties();
}

TEST_CASE("Tables of every checksum type and format version are carried",
          "[sst][carry]") {
  for (const auto checksum :
       {rocksdb::kNoChecksum, rocksdb::kCRC32c, rocksdb::kxxHash,
        rocksdb::kxxHash64, rocksdb::kXXH3}) {
    TableShape shape = WithFilter(PlainShape("checksums"), Filter::kFull);
    shape.table.checksum = checksum;
    RequireCarriesInEveryVersion(shape);
    RequireCarriesInEveryVersion(
        WithFilter(shape, Filter::kPartitionedRibbon));
  }
}

TEST_CASE("Tables with every filter and index type are carried",
          "[sst][carry]") {
  for (const Filter filter :
       {Filter::kNone, Filter::kFull, Filter::kRibbon, Filter::kPartitioned,
        Filter::kPartitionedRibbon}) {
    for (const auto index :
         {BlockBasedTableOptions::kBinarySearch,
          BlockBasedTableOptions::kHashSearch,
          BlockBasedTableOptions::kTwoLevelIndexSearch,
          BlockBasedTableOptions::kBinarySearchWithFirstKey}) {
      TableShape shape = PlainShape("index " + std::to_string(index));
      shape.table.index_type = index;
      if (index == BlockBasedTableOptions::kHashSearch) {
        shape.options.prefix_extractor.reset(
            rocksdb::NewFixedPrefixTransform(8));
      }
      shape = WithFilter(shape, filter);
      if (shape.table.index_type == index) {
        RequireCarriesInEveryVersion(shape);
      }
    }
  }
}

TEST_CASE("Tables with many partitions are carried whole", "[sst][carry]") {
  TableShape shape =
      WithFilter(PlainShape("partitions", 2000), Filter::kPartitioned);
  const std::string file = test::WriteDbFile(shape);
  REQUIRE(PropertiesOf(file).index_partitions > 10);
  RequireCarries(shape, file);
  // Index and filter partitions cut apart from each other, and blocks moved
  // to borders, where RocksDB can.
  shape.newer = "decouple_partitioned_filters=true";
  RequireCarries(shape);
  shape.newer =
      "super_block_alignment_size=4096;"
      "super_block_alignment_space_overhead_ratio=4";
  RequireCarries(shape);
}

TEST_CASE("Tables of every compression are carried", "[sst][carry]") {
  for (const rocksdb::CompressionType compression :
       rocksdb::GetSupportedCompressions()) {
    TableShape shape = PlainShape("compression " + std::to_string(compression));
    shape.options.compression = compression;
    RequireCarriesInEveryVersion(shape);
    shape.table.enable_index_compression = true;
    shape.name += ", in the index too";
    RequireCarriesInEveryVersion(WithFilter(shape, Filter::kPartitioned));
  }
}

TEST_CASE("Tables with a dictionary are carried", "[sst][carry]") {
  for (const auto compression :
       {rocksdb::kZSTD, rocksdb::kLZ4Compression, rocksdb::kZlibCompression}) {
    TableShape shape = PlainShape("dictionary " + std::to_string(compression));
    shape.options.compression = compression;
    shape.options.compression_opts.max_dict_bytes = 4096;
    shape.options.compression_opts.enabled = true;
    shape.options.bottommost_compression_opts = shape.options.compression_opts;
    RequireCarriesInEveryVersion(shape);
    const std::string file = test::WriteDbFile(shape);
    REQUIRE(file.find("rocksdb.compression_dict") != std::string::npos);
    shape.options.compression_opts.zstd_max_train_bytes = 64 << 10;
    RequireCarriesInEveryVersion(WithFilter(shape, Filter::kPartitioned));
  }
}

TEST_CASE("Tables with hashes in their data blocks are carried",
          "[sst][carry]") {
  TableShape shape = PlainShape("hashes");
  shape.table.data_block_index_type =
      BlockBasedTableOptions::kDataBlockBinaryAndHash;
  RequireCarriesInEveryVersion(shape);
}

TEST_CASE("Tables with marked blocks are carried", "[sst][carry]") {
  const bool can = test::CanMarkBlocks();
  const std::string separate = "separate_key_value_in_data_block=true;";
  const std::string uniform = "uniform_cv_threshold=1000;";
  for (const std::string& marks : {separate, uniform, separate + uniform}) {
    TableShape shape = PlainShape(marks);
    shape.newer = marks;
    const SstProperties properties = PropertiesOf(test::WriteDbFile(shape));
    REQUIRE((properties.has_separated_values != 0) ==
            (can && marks != uniform));
    REQUIRE((properties.num_uniform_blocks != 0) == (can && marks != separate));
    RequireCarriesInEveryVersion(shape);
    RequireCarriesInEveryVersion(WithFilter(shape, Filter::kPartitioned));
    shape.options.compression = rocksdb::kZSTD;
    shape.table.data_block_index_type =
        BlockBasedTableOptions::kDataBlockBinaryAndHash;
    shape.table.index_type = BlockBasedTableOptions::kBinarySearchWithFirstKey;
    RequireCarriesInEveryVersion(shape);
  }
}

TEST_CASE("Tables with aligned blocks are carried with their padding",
          "[sst][carry]") {
  TableShape shape = PlainShape("aligned");
  shape.table.block_align = true;
  RequireCarriesInEveryVersion(shape);
  RequireCarriesInEveryVersion(WithFilter(shape, Filter::kPartitioned));
}

TEST_CASE("Tables in another order are carried", "[sst][carry]") {
  TableShape shape = WithFilter(PlainShape("reverse"), Filter::kFull);
  shape.options.comparator = rocksdb::ReverseBytewiseComparator();
  RequireCarriesInEveryVersion(shape);
}

TEST_CASE("Tables of prefix extractors are carried", "[sst][carry]") {
  TableShape shape = WithFilter(PlainShape("prefix"), Filter::kFull);
  shape.options.prefix_extractor.reset(rocksdb::NewCappedPrefixTransform(5));
  RequireCarriesInEveryVersion(shape);
  shape.table.whole_key_filtering = false;
  RequireCarriesInEveryVersion(shape);
}

TEST_CASE("Tables of one entry, of the empty key and of large values are "
          "carried",
          "[sst][carry]") {
  TableShape shape = WithFilter(PlainShape("one", 1), Filter::kFull);
  RequireCarriesInEveryVersion(shape);
  shape.name = "empty key";
  shape.entries = {{"", ""}, {std::string(1, '\0'), "x"}, {"\xff\xff", ""}};
  RequireCarriesInEveryVersion(shape);
  shape.name = "large";
  shape.entries = test::SampleEntries(5, 1 << 20);
  shape.entries.emplace_back(std::string(200 << 10, 'z'), "long key");
  RequireCarriesInEveryVersion(shape);
}

class TwoProperties : public rocksdb::TablePropertiesCollector {
 public:
  Status AddUserKey(const Slice&, const Slice&, rocksdb::EntryType,
                    rocksdb::SequenceNumber, uint64_t) override {
    return Status::OK();
  }
  Status Finish(rocksdb::UserCollectedProperties* properties) override {
    *properties = {{"app.first", std::string("\0\x01\xff", 3)},
                   {"", "without a name"},
                   {"zz.last", std::string(100000, 'v')}};
    return Status::OK();
  }
  rocksdb::UserCollectedProperties GetReadableProperties() const override {
    return {};
  }
  const char* Name() const override { return "TwoProperties"; }
};

class TwoPropertiesFactory : public rocksdb::TablePropertiesCollectorFactory {
 public:
  rocksdb::TablePropertiesCollector* CreateTablePropertiesCollector(
      Context) override {
    return new TwoProperties;
  }
  const char* Name() const override { return "TwoPropertiesFactory"; }
};

TEST_CASE("Properties of the application and the file's identity are kept",
          "[sst][carry]") {
  TableShape shape = PlainShape("collectors");
  shape.options.table_properties_collector_factories.push_back(
      std::make_shared<TwoPropertiesFactory>());
  RequireCarriesInEveryVersion(shape);

  const std::string file = test::WriteDbFile(shape);
  const SstProperties before = PropertiesOf(file);
  const SstProperties after = PropertiesOf(test::Carried(file));
  REQUIRE(before.all.at("app.first") == std::string("\0\x01\xff", 3));
  REQUIRE(before.all.at("rocksdb.column.family.name") == "default");
  REQUIRE(!before.db_session_id.empty());
  auto expected = before.all;
  expected.erase("rocksdb.column.family.name");
  expected["rocksdb.column.family.id"] = "\xff\xff\xff\xff\x07";
  expected["rocksdb.external_sst_file.version"] = std::string("\2\0\0\0", 4);
  expected["rocksdb.external_sst_file.global_seqno"] = std::string(8, '\0');
  REQUIRE(after.all == expected);
}

TEST_CASE("A file that was ingested itself is carried", "[sst][carry]") {
  TableShape shape = WithFilter(PlainShape("ingested"), Filter::kFull);
  for (const uint32_t version : test::WritableVersions()) {
    shape.table.format_version = version;
    const auto env = test::NewMemoryEnv();
    const std::string made =
        test::WriteSst(shape.ToOptions(env.get()), shape.entries);
    const std::string ingested =
        test::RequireIngests(shape, made, shape.entries);
    RequireCarries(shape, ingested);
    // Its own properties already are an external file's.
    REQUIRE(PropertiesOf(test::Carried(made)).all == PropertiesOf(made).all);
  }
}

}  // namespace
}  // namespace sstferry
