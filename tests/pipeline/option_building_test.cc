// Decisions of BuildFamily() beyond copying values: operators, table format,
// level placement, and the options of chunks and of the pull.
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "format/end_state.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/options/family_options.h"
#include "pipeline/options/options_file.h"
#include "pipeline/refresh/delta_filter.h"
#include "rocksdb/db.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/memtablerep.h"
#include "rocksdb/sst_file_reader.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/table.h"
#include "tests/support/catch.h"
#include "tests/support/named_comparator.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/test_db.h"

namespace sstferry::option_building_test {
namespace {

using rocksdb::BlockBasedTableOptions;
using rocksdb::ColumnFamilyOptions;
using rocksdb::Slice;
using rocksdb::Status;
using test::NamedComparator;

class NamedMergeOperator : public rocksdb::AssociativeMergeOperator {
 public:
  const char* Name() const override { return "acme.Merge"; }
  bool Merge(const Slice&, const Slice*, const Slice& value, std::string* out,
             rocksdb::Logger*) const override {
    *out = value.ToString();
    return true;
  }
};

class NamedPrefix : public rocksdb::SliceTransform {
 public:
  const char* Name() const override { return "acme.Prefix"; }
  Slice Transform(const Slice& key) const override {
    return Slice(key.data(), 1);
  }
  bool InDomain(const Slice& key) const override { return !key.empty(); }
};

FamilyDescription Described(const ColumnFamilyOptions& options) {
  FamilyDescription description;
  REQUIRE_OK(DescribeFamily("fam", options, &description));
  return description;
}

const BlockBasedTableOptions& TableOf(
    const std::shared_ptr<rocksdb::TableFactory>& factory) {
  const auto* table = factory->GetOptions<BlockBasedTableOptions>();
  REQUIRE(table != nullptr);
  return *table;
}

ColumnFamilyOptions WithTable(const BlockBasedTableOptions& table) {
  ColumnFamilyOptions options;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

Status Build(const ColumnFamilyOptions& options, BuiltFamily* out,
             const BuildLimits& limits = {},
             const OperatorRegistry& registry = {}) {
  return BuildFamily(Described(options), registry, limits, out);
}

bool HasNote(const std::vector<std::string>& notes, const std::string& part) {
  return std::any_of(notes.begin(), notes.end(), [&](const std::string& note) {
    return note.find(part) != std::string::npos;
  });
}

TEST_CASE("FindComparator knows built-in and registered ones by name",
          "[pipeline][options]") {
  const NamedComparator acme("acme.Order");
  OperatorRegistry registry;
  const rocksdb::Comparator* found = nullptr;
  REQUIRE_OK(FindComparator("f", "leveldb.BytewiseComparator", registry,
                            &found));
  REQUIRE(found == rocksdb::BytewiseComparator());
  REQUIRE_OK(FindComparator("f", "rocksdb.ReverseBytewiseComparator", registry,
                            &found));
  REQUIRE(found == rocksdb::ReverseBytewiseComparator());

  const Status absent = FindComparator("f", "acme.Order", registry, &found);
  REQUIRE(EndStateOf(absent) == EndState::kIncompatible);
  REQUIRE(MessageOf(absent).find("'f'") != std::string::npos);
  REQUIRE(MessageOf(absent).find("'acme.Order'") != std::string::npos);
  REQUIRE(found == nullptr);
  REQUIRE(EndStateOf(FindComparator("f", "", registry, &found)) ==
          EndState::kIncompatible);

  registry.comparators = {nullptr, &acme};
  REQUIRE_OK(FindComparator("f", "acme.Order", registry, &found));
  REQUIRE(found == &acme);
}

TEST_CASE("FindComparator refuses user-defined timestamps",
          "[pipeline][options]") {
  const NamedComparator stamped("acme.Stamped", 8);
  OperatorRegistry registry;
  registry.comparators = {&stamped};
  const rocksdb::Comparator* found = nullptr;
  for (const char* name : {"leveldb.BytewiseComparator.u64ts",
                           "rocksdb.ReverseBytewiseComparator.u64ts",
                           "acme.Stamped"}) {
    INFO(name);
    const Status s = FindComparator("f", name, registry, &found);
    REQUIRE(EndStateOf(s) == EndState::kRefused);
    REQUIRE(MessageOf(s).find("timestamps") != std::string::npos);
    REQUIRE(found == nullptr);
  }
}

TEST_CASE("FindMergeOperator makes built-in operators with their options",
          "[pipeline][options]") {
  OperatorRegistry registry;
  std::shared_ptr<rocksdb::MergeOperator> found;
  std::vector<std::string> notes;
  for (const char* name :
       {"UInt64AddOperator", "PutOperator", "MaxOperator", "BytesXOR",
        "{id=StringAppendOperator;delimiter=|;}"}) {
    INFO(name);
    REQUIRE_OK(FindMergeOperator("f", name, registry, &found, &notes));
    REQUIRE(found != nullptr);
  }
  rocksdb::ColumnFamilyOptions options;
  options.merge_operator = found;
  REQUIRE(Described(options).merge_operator ==
          "{id=StringAppendOperator;delimiter=|;}");
  REQUIRE_OK(FindMergeOperator("f", "", registry, &found, &notes));
  REQUIRE(found == nullptr);
  REQUIRE(notes.empty());
}

TEST_CASE(
    "FindMergeOperator uses a registered operator and notes an unknown one",
    "[pipeline][options]") {
  OperatorRegistry registry;
  std::shared_ptr<rocksdb::MergeOperator> found;
  std::vector<std::string> notes;
  REQUIRE_OK(FindMergeOperator("f", "acme.Merge", registry, &found, &notes));
  REQUIRE(found == nullptr);
  REQUIRE(HasNote(notes, "acme.Merge"));
  notes.clear();
  registry.merge_operators = {nullptr, std::make_shared<NamedMergeOperator>()};
  REQUIRE_OK(FindMergeOperator("f", "acme.Merge", registry, &found, &notes));
  REQUIRE(found == registry.merge_operators[1]);
  REQUIRE(notes.empty());
  REQUIRE(!FindMergeOperator("f", std::string(2000, 'x'), registry, &found,
                             &notes)
               .ok());
}

TEST_CASE("BuildFamily uses operators of the registry", "[pipeline][options]") {
  const NamedComparator order("acme.Order");
  OperatorRegistry registry;
  registry.comparators = {&order};
  registry.merge_operators = {std::make_shared<NamedMergeOperator>()};
  registry.prefix_extractors = {std::make_shared<NamedPrefix>()};
  ColumnFamilyOptions options;
  options.comparator = &order;
  options.merge_operator = registry.merge_operators[0];
  options.prefix_extractor = registry.prefix_extractors[0];
  BuiltFamily built;
  REQUIRE_OK(Build(options, &built, {}, registry));
  REQUIRE(built.notes.empty());
  REQUIRE(built.final_options.comparator == &order);
  REQUIRE(built.pull_options.comparator == &order);
  REQUIRE(built.final_options.merge_operator == registry.merge_operators[0]);
  REQUIRE(built.final_options.prefix_extractor ==
          registry.prefix_extractors[0]);

  REQUIRE(EndStateOf(Build(options, &built)) == EndState::kIncompatible);
  options.comparator = rocksdb::BytewiseComparator();
  REQUIRE_OK(Build(options, &built));
  REQUIRE(HasNote(built.notes, "acme.Merge"));
  REQUIRE(HasNote(built.notes, "acme.Prefix"));
}

TEST_CASE("BuildFamily chooses a format_version that both sides can read",
          "[pipeline][options]") {
  BlockBasedTableOptions table;
  table.format_version = 4;
  const ColumnFamilyOptions options = WithTable(table);
  const auto build = [&](uint32_t asked, uint32_t of_files, uint32_t max,
                         BuiltFamily* built) {
    BuildLimits limits;
    limits.format_version = asked;
    limits.source_files_format_version = of_files;
    limits.max_format_version = max;
    return Build(options, built, limits);
  };
  BuiltFamily built;
  REQUIRE_OK(build(0, 0, 5, &built));  // no files: the value in OPTIONS
  REQUIRE(built.format_version == 4);
  REQUIRE_OK(build(0, 3, 5, &built));  // never newer than the files
  REQUIRE(built.format_version == 3);
  REQUIRE(TableOf(built.final_options.table_factory).format_version == 4);
  REQUIRE(built.notes.empty());
  REQUIRE_OK(build(0, 7, 5, &built));  // lowered to what the target can read
  REQUIRE(built.format_version == 5);
  REQUIRE(HasNote(built.notes, "format_version"));
  REQUIRE_OK(build(0, 1, 5, &built));
  REQUIRE(built.format_version == 2);
  REQUIRE_OK(build(2, 5, 5, &built));  // the user's choice comes first
  REQUIRE(built.format_version == 2);
  REQUIRE_OK(build(0, 5, 3, &built));
  REQUIRE(TableOf(built.final_options.table_factory).format_version == 3);
  for (uint32_t bad : {1u, 6u, 4000000000u}) {
    REQUIRE(EndStateOf(build(bad, 5, 5, &built)) == EndState::kIncompatible);
  }
}

TEST_CASE("BuildFamily lowers a format_version that this RocksDB cannot read",
          "[pipeline][options]") {
  FamilyDescription description = Described(ColumnFamilyOptions());
  for (NamedValue& option : description.table_options) {
    if (option.name == "format_version") {
      option.value = "9";
    }
  }
  BuiltFamily built;
  REQUIRE_OK(BuildFamily(description, {}, {}, &built));
  REQUIRE(TableOf(built.final_options.table_factory).format_version ==
          kMaxTableFormatVersion);
  REQUIRE(built.format_version == kMaxTableFormatVersion);
  REQUIRE(HasNote(built.notes, "format_version 9"));
}

TEST_CASE("BuildFamily turns plain tables into block-based ones",
          "[pipeline][options]") {
  ColumnFamilyOptions options;
  options.table_factory.reset(rocksdb::NewPlainTableFactory());
  options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(4));
  BuiltFamily built;
  REQUIRE_OK(Build(options, &built));
  REQUIRE(TableOf(built.final_options.table_factory).format_version ==
          DefaultFormatVersion());
  REQUIRE(built.final_options.prefix_extractor->AsString() ==
          "rocksdb.FixedPrefix.4");
  REQUIRE(HasNote(built.advice, "plain tables"));
  // A loaded family with plain tables builds block-based chunks.
  rocksdb::Options chunk;
  REQUIRE_OK(ChunkOptions(options, 5, RocksDbRelease(), false, &chunk));
  REQUIRE(TableOf(chunk.table_factory).format_version == 5);
}

TEST_CASE("BuildFamily and ChunkOptions refuse other table formats",
          "[pipeline][options]") {
  ColumnFamilyOptions options;
  options.table_factory.reset(rocksdb::NewCuckooTableFactory());
  BuiltFamily built;
  const Status s = Build(options, &built);
  REQUIRE(EndStateOf(s) == EndState::kRefused);
  REQUIRE(MessageOf(s).find("'fam'") != std::string::npos);
  rocksdb::Options chunk;
  REQUIRE(EndStateOf(ChunkOptions(options, 5, RocksDbRelease(), false,
                                  &chunk)) == EndState::kRefused);
}

TEST_CASE("BuildFamily pulls universal families as leveled if necessary",
          "[pipeline][options]") {
  ColumnFamilyOptions options;
  options.compaction_style = rocksdb::kCompactionStyleUniversal;
  for (bool direct : {false, true}) {
    BuildLimits limits;
    limits.universal_ingests_to_last_level = direct;
    BuiltFamily built;
    REQUIRE_OK(Build(options, &built, limits));
    REQUIRE(built.pull_options.compaction_style ==
            (direct ? rocksdb::kCompactionStyleUniversal
                    : rocksdb::kCompactionStyleLevel));
    REQUIRE(built.final_options.compaction_style ==
            rocksdb::kCompactionStyleUniversal);
    REQUIRE(!built.keeps_level0);
  }
  REQUIRE(BuildLimits().universal_ingests_to_last_level ==
          RocksDbIsAtLeast(9, 0));
}

TEST_CASE("BuildFamily refuses FIFO where ingestion would misplace files",
          "[pipeline][options]") {
  ColumnFamilyOptions options;
  options.compaction_style = rocksdb::kCompactionStyleFIFO;
  BuildLimits limits;
  limits.fifo_ingests_to_level0 = false;
  BuiltFamily built;
  const Status s = Build(options, &built, limits);
  REQUIRE(EndStateOf(s) == EndState::kRefused);
  REQUIRE(MessageOf(s).find("'fam'") != std::string::npos);
  limits.fifo_ingests_to_level0 = true;
  REQUIRE_OK(Build(options, &built, limits));
  REQUIRE(built.keeps_level0);
  REQUIRE(built.pull_options.compaction_style == rocksdb::kCompactionStyleFIFO);
  // otherwise files could expire during the pull
  REQUIRE(built.pull_options.ttl == 0);
  REQUIRE(BuildLimits().fifo_ingests_to_level0 == RocksDbIsAtLeast(9, 3));
  options.compaction_style = rocksdb::kCompactionStyleLevel;
  options.num_levels = 1;
  REQUIRE_OK(Build(options, &built, limits));
  REQUIRE(built.keeps_level0);
}

TEST_CASE(
    "BuildFamily warns if entries depend on ages, because ages restart at 0",
    "[pipeline][options]") {
  BuildLimits limits;
  limits.fifo_ingests_to_level0 = true;
  ColumnFamilyOptions fifo;
  fifo.compaction_style = rocksdb::kCompactionStyleFIFO;
  BuiltFamily built;
  for (const uint64_t seconds : {0, 70}) {
    fifo.ttl = 0;
    fifo.periodic_compaction_seconds = seconds;
    REQUIRE_OK(Build(fifo, &built, limits));
    REQUIRE(HasNote(built.advice, "ages begin anew") == (seconds != 0));
  }
  fifo.ttl = 5000;
  REQUIRE_OK(Build(fifo, &built, limits));
  REQUIRE(HasNote(built.advice, "FIFO compaction drops entries by their age"));
  // With other compaction styles, the times only affect when RocksDB compacts.
  ColumnFamilyOptions options;
  options.ttl = 5000;
  options.periodic_compaction_seconds = 70;
  options.preserve_internal_time_seconds = 60;
  REQUIRE_OK(Build(options, &built));
  REQUIRE(built.advice.empty());
  REQUIRE(built.pull_options.ttl == 0);
  REQUIRE(built.pull_options.preserve_internal_time_seconds == 0);
  REQUIRE(built.final_options.preserve_internal_time_seconds == 60);
  options.compaction_style = rocksdb::kCompactionStyleUniversal;
  options.preclude_last_level_data_seconds = 80;
  REQUIRE_OK(Build(options, &built));
  REQUIRE(HasNote(built.advice, "preclude_last_level_data_seconds"));
  REQUIRE(built.pull_options.preclude_last_level_data_seconds == 0);
  REQUIRE(built.final_options.preclude_last_level_data_seconds == 80);
}

TEST_CASE("Pull options are small and compact nothing", "[pipeline][options]") {
  BlockBasedTableOptions table;
  table.no_block_cache = true;
  ColumnFamilyOptions options = WithTable(table);
  options.write_buffer_size = 1u << 30;
  options.periodic_compaction_seconds = 10;
  options.enable_blob_files = true;
  BuildLimits limits;
  limits.cache = rocksdb::NewLRUCache(1 << 20);
  BuiltFamily built;
  REQUIRE_OK(Build(options, &built, limits));
  const ColumnFamilyOptions& pull = built.pull_options;
  REQUIRE(pull.disable_auto_compactions);
  REQUIRE(pull.write_buffer_size <= 4u << 20);
  REQUIRE(pull.periodic_compaction_seconds == 0);
  REQUIRE(!pull.enable_blob_files);
  REQUIRE(TableOf(pull.table_factory).cache_index_and_filter_blocks);
  REQUIRE(TableOf(pull.table_factory).block_cache == limits.cache);
  REQUIRE(built.final_options.write_buffer_size == 1u << 30);
  REQUIRE(built.final_options.enable_blob_files);
  REQUIRE(TableOf(built.final_options.table_factory).no_block_cache);
  REQUIRE(HasNote(built.advice, "blob"));
}

TEST_CASE(
    "BuildFamily makes no options that abort a RocksDB with assertions",
    "[pipeline][options]") {
  ColumnFamilyOptions options;
  std::string noted;
  SECTION("a tiny write buffer") { options.write_buffer_size = 1; }
  SECTION("arena blocks larger than the write buffer") {
    options.write_buffer_size = 70'000;
    options.arena_block_size = 1u << 20;
    noted = "'arena_block_size' was dropped";
  }
  SECTION("huge pages larger than the write buffer") {
    options.write_buffer_size = 70'000;
    options.memtable_huge_page_size = 2u << 20;
    noted = "'memtable_huge_page_size' was dropped";
  }
  SECTION("buckets that fill the write buffer") {
    options.write_buffer_size = 1u << 20;
    options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(2));
    options.memtable_factory.reset(rocksdb::NewHashSkipListRepFactory());
    noted = "'memtable_factory' was dropped";
  }
  SECTION("a hashed memtable with enough room is kept") {
    options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(2));
    options.memtable_factory.reset(rocksdb::NewHashSkipListRepFactory());
  }
  BuiltFamily built;
  REQUIRE_OK(Build(options, &built));
  REQUIRE(HasNote(built.notes, "was dropped") == !noted.empty());
  REQUIRE((noted.empty() || HasNote(built.notes, noted)));
  const ScratchDir dir;
  rocksdb::Options open;
  static_cast<ColumnFamilyOptions&>(open) = built.final_options;
  open.create_if_missing = true;
  open.allow_concurrent_memtable_write = false;
  std::unique_ptr<rocksdb::DB> db;
  REQUIRE_OK(rocksdb::DB::Open(open, dir / "db", IntoDb(&db)));
  REQUIRE_OK(db->Put(rocksdb::WriteOptions(), "key", "value"));
}

TEST_CASE(
    "ChunkOptions keep the table's shape and drop options that cost memory",
    "[pipeline][options]") {
  BlockBasedTableOptions table;
  table.block_size = 7777;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(12));
  table.cache_index_and_filter_blocks = true;
  ColumnFamilyOptions options = WithTable(table);
  options.compression_opts.max_dict_bytes = 1 << 14;
  options.compression_opts.parallel_threads = 8;
  options.bottommost_compression_opts.max_dict_buffer_bytes = 1ull << 40;
  options.sample_for_compression = 5;
  rocksdb::Options chunk;
  REQUIRE_OK(ChunkOptions(options, 3, RocksDbRelease(), false, &chunk));
  const BlockBasedTableOptions& made = TableOf(chunk.table_factory);
  REQUIRE(made.format_version == 3);
  REQUIRE(made.block_size == 7777);
  REQUIRE(made.filter_policy != nullptr);
  REQUIRE(made.no_block_cache);
  REQUIRE(made.block_cache == nullptr);
  REQUIRE(!made.cache_index_and_filter_blocks);
  REQUIRE(chunk.compression_opts.max_dict_bytes == 1 << 14);
  REQUIRE(chunk.compression_opts.parallel_threads == 1);
  for (uint64_t bytes :
       {chunk.compression_opts.max_dict_buffer_bytes,
        chunk.bottommost_compression_opts.max_dict_buffer_bytes}) {
    REQUIRE(bytes > 0);
    REQUIRE(bytes <= 16u << 20);
  }
  REQUIRE(chunk.sample_for_compression == 0);
  for (uint32_t bad : {0u, 1u, kMaxTableFormatVersion + 1}) {
    REQUIRE(EndStateOf(ChunkOptions(options, bad, RocksDbRelease(), false,
                                    &chunk)) == EndState::kIncompatible);
  }
}

TEST_CASE("Chunks have no filters where the last level has none",
          "[pipeline][options]") {
  BlockBasedTableOptions table;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(12));
  ColumnFamilyOptions options = WithTable(table);
  options.optimize_filters_for_hits = true;
  rocksdb::Options chunk;
  REQUIRE_OK(ChunkOptions(options, 5, RocksDbRelease(), false, &chunk));
  REQUIRE(TableOf(chunk.table_factory).filter_policy == nullptr);
  options.num_levels = 1;  // files stay in level 0
  REQUIRE_OK(ChunkOptions(options, 5, RocksDbRelease(), false, &chunk));
  REQUIRE(TableOf(chunk.table_factory).filter_policy != nullptr);
}

// Returns the size of the filter of a table with 10,000 keys.
uint64_t FilterBytes(const rocksdb::Options& options) {
  const ScratchDir dir;
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options);
  REQUIRE_OK(writer.Open(dir / "table.sst"));
  for (uint64_t i = 0; i < 10'000; ++i) {
    REQUIRE_OK(writer.Put(test::NumberedKey(i), "v"));
  }
  REQUIRE_OK(writer.Finish());
  rocksdb::SstFileReader reader(options);
  REQUIRE_OK(reader.Open(dir / "table.sst"));
  // The application's filter policy must be able to read the filter.
  std::string value;
  const std::unique_ptr<rocksdb::Iterator> it(reader.NewIterator({}));
  it->Seek(test::NumberedKey(5000));
  REQUIRE(it->Valid());
  return reader.GetTableProperties()->filter_size;
}

TEST_CASE("Deltas have filters with more bits per key, also for a family whose "
          "last level has none",
          "[pipeline][options]") {
  const bool only_above = GENERATE(false, true);
  const bool ribbon = GENERATE(false, true);
  BlockBasedTableOptions table;
  table.filter_policy.reset(ribbon ? rocksdb::NewRibbonFilterPolicy(10)
                                   : rocksdb::NewBloomFilterPolicy(10));
  ColumnFamilyOptions options = WithTable(table);
  options.optimize_filters_for_hits = only_above;
  rocksdb::Options chunk;
  REQUIRE_OK(ChunkOptions(options, 5, RocksDbRelease(), false, &chunk));
  rocksdb::Options delta = chunk;
  UseDeltaFilters(options, &delta);
  const double own = static_cast<double>(FilterBytes(
      rocksdb::Options(rocksdb::DBOptions(), options)));
  const double more = static_cast<double>(FilterBytes(delta));
  REQUIRE(own > 5000);
  REQUIRE(more > 1.5 * own);
  REQUIRE(more < 1.7 * own);
}

TEST_CASE("Deltas have no filters where the family has none",
          "[pipeline][options]") {
  const ColumnFamilyOptions options = WithTable(BlockBasedTableOptions());
  rocksdb::Options chunk;
  REQUIRE_OK(ChunkOptions(options, 5, RocksDbRelease(), false, &chunk));
  UseDeltaFilters(options, &chunk);
  REQUIRE(FilterBytes(chunk) == 0);
}

}  // namespace
}  // namespace sstferry::option_building_test
