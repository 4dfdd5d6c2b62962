// Each reason not to carry a file, alone.
#include "pipeline/source/plan/carry_rules.h"

#include "rocksdb/filter_policy.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/table.h"
#include "tests/support/catch.h"
#include "tests/support/named_comparator.h"

namespace sstferry {
namespace {

using rocksdb::BlockBasedTableOptions;

// A file that nothing speaks against, as a case changes it.
struct Subject {
  CarryRules rules;
  FilePlan file;
  SstProperties properties;
  std::vector<SstMetaBlock> meta_blocks;
  SstFooter footer;

  Subject() {
    rules.comparator = rocksdb::BytewiseComparator();
    rules.max_format_version = 5;
    rules.compressions = {0, 1, 7};
    rules.shape.filter_block = "fullfilter.rocksdb.BuiltinBloomFilter";
    rules.shape.filter_policy = "bloomfilter";
    rules.shape.compression = 7;
    rules.shape.compression_level = 3;
    rules.shape.prefix_extractor = "rocksdb.FixedPrefix.4";
    file.name = "000007.sst";
    file.smallest = "a";
    file.largest = "b";
    file.bytes = 1000;
    file.entries = 10;
    properties.num_entries = 10;
    properties.raw_key_bytes = 100;
    properties.raw_value_bytes = 50;
    properties.comparator = "leveldb.BytewiseComparator";
    properties.filter_policy = "bloomfilter";
    properties.compression = "ZSTD";
    properties.compression_options =
        "window_bits=-14; level=3; strategy=0; max_dict_bytes=0; ";
    properties.prefix_extractor = "rocksdb.FixedPrefix.4";
    properties.all["rocksdb.block.based.table.whole.key.filtering"] = "1";
    meta_blocks.push_back({"fullfilter.rocksdb.BuiltinBloomFilter", {}});
    footer.format_version = 5;
    footer.checksum = SstChecksum::kXxh3;
  }

  TableFacts facts() const { return {footer, &properties, &meta_blocks}; }
  std::string metadata() const { return ObstacleInMetadata(rules, file); }
  std::string table() const { return ObstacleInTable(rules, facts()); }
  std::string difference() const { return DifferenceInTable(rules, facts()); }
};

using Change = void (*)(Subject*);

TEST_CASE("A file with no fault is carried", "[source][carry]") {
  const Subject subject;
  REQUIRE(subject.metadata() == "");
  REQUIRE(subject.table() == "");
  REQUIRE(subject.difference() == "");
}

TEST_CASE("Metadata names each obstacle to carrying", "[source][carry]") {
  const struct {
    const char* reason;
    Change change;
  } kCases[] = {
      {"carrying is disabled",
       [](Subject* s) { s->rules.mode = CarryMode::kNever; }},
      {"the target does not accept carried files",
       [](Subject* s) { s->rules.target_takes_carried = false; }},
      {"keys carry timestamps",
       [](Subject* s) {
         static const test::NamedComparator kStamped(
             "sstferry.test.Stamped", /*timestamp_bytes=*/8);
         s->rules.comparator = &kStamped;
       }},
      {"in a family of plain tables",
       [](Subject* s) { s->rules.plain_tables = true; }},
      {"wal not flushed",
       [](Subject* s) { s->rules.wal_not_flushed = true; }},
      {"sequence numbers up to 9",
       [](Subject* s) { s->file.largest_sequence = 9; }},
      {"overlaps 000008.sst",
       [](Subject* s) { s->file.overlaps = "000008.sst"; }},
      {"cut by the requested bounds", [](Subject* s) { s->file.inside = false; }},
      {"refers to blob files", [](Subject* s) { s->file.has_blobs = true; }},
      {"a key is longer than 262144 bytes",
       [](Subject* s) { s->file.largest.assign(kMaxKeyBytes + 1, 'x'); }},
      {"a key is longer than 262144 bytes",
       [](Subject* s) { s->file.smallest.assign(kMaxKeyBytes + 1, 'a'); }},
      {"larger than a chunk of 999 bytes",
       [](Subject* s) { s->rules.max_bytes = 999; }},
  };
  for (const auto& one : kCases) {
    Subject subject;
    one.change(&subject);
    REQUIRE(subject.metadata() == one.reason);
  }
}

TEST_CASE("A table names each obstacle to carrying", "[source][carry]") {
  const struct {
    const char* reason;
    Change change;
  } kCases[] = {
      {"holds 1 range deletion",
       [](Subject* s) {
         s->properties.num_deletions = s->properties.num_range_deletions = 1;
       }},
      {"holds 2 deletions",
       [](Subject* s) { s->properties.num_deletions = 2; }},
      {"holds 3 merge operands",
       [](Subject* s) { s->properties.num_merge_operands = 3; }},
      {"holds no entries", [](Subject* s) { s->properties.num_entries = 0; }},
      {"its properties do not add up",
       [](Subject* s) { s->properties.raw_key_bytes = 79; }},
      {"comparator rocksdb.ReverseBytewiseComparator",
       [](Subject* s) {
         s->properties.comparator = "rocksdb.ReverseBytewiseComparator";
       }},
      {"format version 6, the target reads up to 5",
       [](Subject* s) { s->footer.format_version = 6; }},
      {"format version 5, not 4",
       [](Subject* s) { s->rules.asked_format_version = 4; }},
      {"values apart from keys, which the target does not read",
       [](Subject* s) {
         s->properties.has_separated_values = 1;
         s->rules.reads_marked_blocks = false;
       }},
      {"blocks of uniform keys, which the target does not read",
       [](Subject* s) {
         s->properties.num_uniform_blocks = 2;
         s->rules.reads_marked_blocks = false;
       }},
      {"", [](Subject* s) { s->rules.reads_marked_blocks = false; }},
      {"",
       [](Subject* s) {
         s->properties.has_separated_values = 1;
         s->properties.num_uniform_blocks = 2;
       }},
      {"the target lacks compression ZSTD",
       [](Subject* s) { s->rules.compressions.erase(7); }},
      {"the target lacks compression LZ4",
       [](Subject* s) { s->properties.compression = "BuiltinV2;0407;"; }},
      {"compression Mine;8001; is not understood",
       [](Subject* s) { s->properties.compression = "Mine;8001;"; }},
      {"compression Brotli is not understood",
       [](Subject* s) { s->properties.compression = "Brotli"; }},
  };
  for (const auto& one : kCases) {
    Subject subject;
    one.change(&subject);
    REQUIRE(subject.table() == one.reason);
    // Not a question of the mode.
    subject.rules.mode = CarryMode::kOnly;
    REQUIRE(subject.table() == one.reason);
  }
}

TEST_CASE("A table names each difference from a rebuilt one",
          "[source][carry]") {
  const struct {
    const char* reason;
    Change change;
  } kCases[] = {
      {"no block checksums",
       [](Subject* s) { s->footer.checksum = SstChecksum::kNone; }},
      {"filter: none, not fullfilter.rocksdb.BuiltinBloomFilter",
       [](Subject* s) { s->meta_blocks.clear(); }},
      {"filter: fullfilter.rocksdb.BuiltinBloomFilter, not none",
       [](Subject* s) { s->rules.shape.filter_block.clear(); }},
      {"filter: partitionedfilter.rocksdb.BuiltinBloomFilter, not "
       "fullfilter.rocksdb.BuiltinBloomFilter",
       [](Subject* s) {
         s->meta_blocks[0].name =
             "partitionedfilter.rocksdb.BuiltinBloomFilter";
       }},
      {"filter: ribbonfilter, not bloomfilter",
       [](Subject* s) { s->properties.filter_policy = "ribbonfilter"; }},
      {"filter: of whole keys",
       [](Subject* s) { s->rules.shape.whole_key_filter = false; }},
      {"filter: not of whole keys",
       [](Subject* s) {
         s->properties.all["rocksdb.block.based.table.whole.key.filtering"] =
             "0";
       }},
      {"index: two-level, not binary search",
       [](Subject* s) { s->properties.index_type = SstIndexType::kTwoLevel; }},
      {"compression: Snappy, not ZSTD",
       [](Subject* s) { s->properties.compression = "Snappy"; }},
      {"compression: BuiltinV2;01;, not ZSTD",
       [](Subject* s) { s->properties.compression = "BuiltinV2;01;"; }},
      {"compression: ;;, not ZSTD",
       [](Subject* s) { s->properties.compression = ";;"; }},
      {"compression: another level or dictionary size",
       [](Subject* s) { s->rules.shape.compression_level = 9; }},
      {"compression: another level or dictionary size",
       [](Subject* s) { s->rules.shape.dictionary_bytes = 4096; }},
      {"prefix extractor: rocksdb.FixedPrefix.4, not nullptr",
       [](Subject* s) { s->rules.shape.prefix_extractor = "nullptr"; }},
      {"prefix extractor: nullptr, not rocksdb.FixedPrefix.4",
       [](Subject* s) { s->properties.prefix_extractor.clear(); }},
  };
  for (const auto& one : kCases) {
    Subject subject;
    one.change(&subject);
    REQUIRE(subject.difference() == one.reason);
  }
}

TEST_CASE("Names of older and newer tables count as equal",
          "[source][carry]") {
  const Change kCases[] = {
      [](Subject* s) {
        s->properties.filter_policy = "rocksdb.BuiltinBloomFilter";
      },
      [](Subject* s) { s->properties.compression = "BuiltinV2;07;"; },
      [](Subject* s) { s->properties.compression = "BuiltinV2;0007;"; },
      [](Subject* s) { s->properties.compression = "BuiltinV2;;"; },
      [](Subject* s) { s->properties.compression_options.clear(); },
      [](Subject* s) {
        s->properties.compression = ";;";
        s->rules.shape.compression = 0;
      },
      [](Subject* s) {
        s->properties.prefix_extractor.clear();
        s->rules.shape.prefix_extractor = "nullptr";
      },
  };
  for (const Change& change : kCases) {
    Subject subject;
    change(&subject);
    REQUIRE(subject.table() == "");
    REQUIRE(subject.difference() == "");
  }
}

TEST_CASE("The shape of built tables follows the family's options",
          "[source][carry]") {
  rocksdb::Options options;
  BlockBasedTableOptions table;
  options.compression = rocksdb::kSnappyCompression;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  TableShape shape = ShapeOf(options);
  REQUIRE(shape.filter_block == "");
  REQUIRE(shape.compression == 1);
  REQUIRE(shape.prefix_extractor == "nullptr");

  table.filter_policy.reset(rocksdb::NewRibbonFilterPolicy(10));
  table.partition_filters = true;  // means nothing without a two-level index
  options.compression_per_level = {rocksdb::kNoCompression, rocksdb::kZSTD};
  options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(3));
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  shape = ShapeOf(options);
  REQUIRE(shape.filter_block == "fullfilter.rocksdb.BuiltinBloomFilter");
  REQUIRE(shape.filter_policy == "ribbonfilter");
  REQUIRE(shape.compression == 7);
  REQUIRE(shape.prefix_extractor == "rocksdb.FixedPrefix.3");

  table.index_type = BlockBasedTableOptions::kTwoLevelIndexSearch;
  options.bottommost_compression = rocksdb::kLZ4Compression;
  options.bottommost_compression_opts.enabled = true;
  options.bottommost_compression_opts.level = 5;
  options.bottommost_compression_opts.max_dict_bytes = 77;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  shape = ShapeOf(options);
  REQUIRE(shape.filter_block ==
          "partitionedfilter.rocksdb.BuiltinBloomFilter");
  REQUIRE(shape.index_type == SstIndexType::kTwoLevel);
  REQUIRE(shape.compression == 4);
  REQUIRE(shape.compression_level == 5);
  REQUIRE(shape.dictionary_bytes == 77);
}

}  // namespace
}  // namespace sstferry
