// tests/golden/sst contains small table files of several RocksDB versions. Each
// NAME.sst (NAME begins with the version) has the expected output of
// DescribeSst() in NAME.txt. All of them contain SampleEntries(60).
//
// To add files of the linked version: test_format "[.rewrite-sst]". To write
// only the texts again: test_format "[.describe-sst]".
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "format/rocksdb/sst_file_check.h"
#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/slice_transform.h"
#include "tests/support/catch.h"
#include "tests/support/db_tables.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/sst_describe.h"

namespace sstferry::sst_golden_test {
namespace {

using rocksdb::BlockBasedTableOptions;
using test::KeyValues;
using test::PlainShape;
using test::TableShape;
namespace fs = std::filesystem;

constexpr size_t kEntries = 60;
const fs::path kFolder =
    fs::path(SSTFERRY_SOURCE_DIR) / "tests" / "golden" / "sst";

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  INFO(path.string());
  REQUIRE(in.good());
  return test::BytesIn(in);
}

std::string Describe(const std::string& file) {
  std::vector<std::pair<std::string, std::string>> rows;
  REQUIRE_OK(DescribeSst(SliceSource(file), &rows));
  std::string text;
  for (const auto& [name, value] : rows) {
    text += name + ": " + value + "\n";
  }
  return text;
}

void Write(const std::string& name, const std::string& file) {
  const fs::path path = kFolder / (RocksDbVersion() + "-" + name);
  std::ofstream(path.string() + ".sst", std::ios::binary) << file;
  std::ofstream(path.string() + ".txt") << Describe(file);
}

TableShape Shape(uint32_t version, rocksdb::ChecksumType checksum) {
  TableShape shape = PlainShape("golden", kEntries);
  shape.options.db_host_id = "golden";
  shape.table.format_version = version;
  shape.table.checksum = checksum;
  return shape;
}

TEST_CASE("Golden table files of this version are written", "[.rewrite-sst]") {
  fs::create_directories(kFolder);
  const uint32_t newest = test::WritableVersions().back();
  Write("plain", test::WriteDbFile(Shape(2, rocksdb::kCRC32c)));

  TableShape shape = Shape(newest, rocksdb::kXXH3);
  shape.table.filter_policy.reset(rocksdb::NewRibbonFilterPolicy(10));
  shape.table.partition_filters = true;
  shape.table.index_type = BlockBasedTableOptions::kTwoLevelIndexSearch;
  shape.options.compression = rocksdb::kZSTD;
  shape.options.compression_opts.max_dict_bytes = 512;
  Write("partitioned-zstd-dictionary", test::WriteDbFile(shape));

  shape = Shape(4, rocksdb::kxxHash64);
  shape.table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  shape.table.index_type = BlockBasedTableOptions::kHashSearch;
  shape.table.data_block_index_type =
      BlockBasedTableOptions::kDataBlockBinaryAndHash;
  shape.options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(8));
  shape.options.compression = rocksdb::kSnappyCompression;
  Write("hash-snappy", test::WriteDbFile(shape));

  shape = Shape(newest, rocksdb::kxxHash);
  shape.table.index_type = BlockBasedTableOptions::kBinarySearchWithFirstKey;
  shape.table.block_align = true;
  Write("first-key-aligned", test::WriteDbFile(shape));

  if (test::CanMarkBlocks()) {
    shape = Shape(newest, rocksdb::kXXH3);
    shape.newer =
        "separate_key_value_in_data_block=true;"
        "super_block_alignment_size=4096;"
        "super_block_alignment_space_overhead_ratio=4";
    shape.table.data_block_index_type =
        BlockBasedTableOptions::kDataBlockBinaryAndHash;
    shape.options.compression = rocksdb::kLZ4Compression;
    Write("separated-lz4", test::WriteDbFile(shape));

    shape = Shape(5, rocksdb::kCRC32c);
    shape.newer = "uniform_cv_threshold=1000";
    shape.table.index_type = BlockBasedTableOptions::kTwoLevelIndexSearch;
    Write("uniform", test::WriteDbFile(shape));
  }

  const auto env = test::NewMemoryEnv();
  shape = Shape(newest, rocksdb::kCRC32c);
  Write("ingested",
        test::WriteSst(shape.ToOptions(env.get()), shape.entries));
}

std::vector<fs::path> GoldenFiles() {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".sst") {
      paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  REQUIRE(paths.size() >= 10);
  return paths;
}

TEST_CASE("The texts of golden table files are written again",
          "[.describe-sst]") {
  for (const fs::path& path : GoldenFiles()) {
    std::ofstream(fs::path(path).replace_extension("txt"))
        << Describe(ReadFile(path));
  }
}

KeyValues EntriesIn(const SstReader& reader) {
  KeyValues entries;
  REQUIRE_OK(reader.ForEachIndexEntry([&](const SstIndexEntry& block) {
    return reader.ForEachEntry(
        block.handle,
        [&](const rocksdb::Slice& key, const rocksdb::Slice& value) {
          entries.emplace_back(
              std::string(key.data(), key.size() - kSstKeyTrailerBytes),
              value.ToString());
          return rocksdb::Status::OK();
        });
  }));
  return entries;
}

TEST_CASE("Golden table files of other versions are read alike",
          "[sst][golden]") {
  const KeyValues expected = PlainShape("reader", kEntries).entries;
  for (const fs::path& path : GoldenFiles()) {
    INFO(path.string());
    const std::string file = ReadFile(path);
    REQUIRE(Describe(file) ==
            ReadFile(fs::path(path).replace_extension("txt")));
    const SliceSource source(file);
    SstReader reader;
    REQUIRE_OK(reader.Open(&source));
    REQUIRE(EntriesIn(reader) == expected);
    SstFileFacts facts;
    REQUIRE_OK(CheckSstFile(source, {}, &facts));
    REQUIRE_FALSE(facts.unchecked);
  }
}

}  // namespace
}  // namespace sstferry::sst_golden_test
