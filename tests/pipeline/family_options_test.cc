#include "pipeline/options/family_options.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "format/end_state.h"
#include "format/limits.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/options/option_rules.h"
#include "pipeline/options/options_file.h"
#include "rocksdb/convenience.h"
#include "rocksdb/db.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/memtablerep.h"
#include "rocksdb/table.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::family_options_test {
namespace {

namespace fs = std::filesystem;
using rocksdb::BlockBasedTableOptions;
using rocksdb::ColumnFamilyOptions;
using rocksdb::Status;

FamilyDescription Described(const ColumnFamilyOptions& options) {
  FamilyDescription description;
  REQUIRE_OK(DescribeFamily("fam", options, &description));
  return description;
}

const BlockBasedTableOptions& TableOf(const ColumnFamilyOptions& options) {
  const auto* table =
      options.table_factory->GetOptions<BlockBasedTableOptions>();
  REQUIRE(table != nullptr);
  return *table;
}

void Set(std::vector<NamedValue>* options, const std::string& name,
         const std::string& value) {
  for (NamedValue& option : *options) {
    if (option.name == name) {
      option.value = value;
      return;
    }
  }
  options->push_back({name, value});
}

Status Build(const FamilyDescription& description, BuiltFamily* out,
             const BuildLimits& limits = {}) {
  return BuildFamily(description, OperatorRegistry(), limits, out);
}

bool HasNote(const std::vector<std::string>& notes, const std::string& part) {
  return std::any_of(notes.begin(), notes.end(), [&](const std::string& note) {
    return note.find(part) != std::string::npos;
  });
}

// Builds a family with one option changed. Requires that the option is left
// out, and that a note names the family and the option.
void RequireLeftOut(const std::string& name, const std::string& value) {
  FamilyDescription description = Described(ColumnFamilyOptions());
  Set(&description.options, name, value);
  BuiltFamily built;
  INFO(name << "=" << value);
  REQUIRE_OK(Build(description, &built));
  REQUIRE(HasNote(built.notes, "'fam': option '" + name));
}

// Reads the newest OPTIONS file of a database.
DatabaseDescription ReadOptionsOf(const std::string& db_path) {
  std::string newest;
  for (const auto& entry : fs::directory_iterator(db_path)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("OPTIONS-", 0) == 0) {
      newest = std::max(newest, entry.path().string());
    }
  }
  std::ifstream file(newest);
  std::stringstream text;
  text << file.rdbuf();
  DatabaseDescription description;
  std::vector<std::string> notes;
  REQUIRE_OK(ParseOptionsText(text.str(), &description, &notes));
  return description;
}

// Makes a database, closes it, and returns the contents of its OPTIONS file.
DatabaseDescription OptionsAfterOpen(rocksdb::DBOptions db_options,
                                     const ColumnFamilyOptions& options) {
  ScratchDir dir;
  db_options.create_if_missing = true;
  std::unique_ptr<rocksdb::DB> db;
  REQUIRE_OK(rocksdb::DB::Open(rocksdb::Options(db_options, options),
                               dir.path() + "/db", IntoDb(&db)));
  REQUIRE_OK(db->Close());
  db.reset();
  return ReadOptionsOf(dir.path() + "/db");
}

void RequireEqualLists(const std::vector<NamedValue>& left,
                       const std::vector<NamedValue>& right) {
  std::map<std::string, std::string> expected;
  for (const NamedValue& option : left) {
    expected[option.name] = option.value;
  }
  REQUIRE(right.size() == left.size());
  for (const NamedValue& option : right) {
    INFO(option.name);
    REQUIRE(expected[option.name] == option.value);
  }
}

ColumnFamilyOptions UnusualOptions() {
  ColumnFamilyOptions options;
  options.num_levels = 5;
  options.write_buffer_size = 3 << 20;
  options.compression = rocksdb::kLZ4Compression;
  options.bottommost_compression = rocksdb::kZSTD;
  options.bottommost_compression_opts.enabled = true;
  options.bottommost_compression_opts.level = 4;
  options.bottommost_compression_opts.max_dict_bytes = 16 << 10;
  options.bottommost_compression_opts.zstd_max_train_bytes = 1 << 20;
  options.compression_per_level = {rocksdb::kNoCompression,
                                   rocksdb::kSnappyCompression,
                                   rocksdb::kZSTD};
  options.max_bytes_for_level_multiplier = 7.5;
  options.max_bytes_for_level_multiplier_additional = {1, 2, 3};
  options.ttl = 12345;
  options.periodic_compaction_seconds = 54321;
  options.compaction_pri = rocksdb::kOldestLargestSeqFirst;
  options.compaction_options_universal.size_ratio = 9;
  options.enable_blob_files = true;
  options.min_blob_size = 4096;
  options.blob_compression_type = rocksdb::kLZ4Compression;
  options.blob_garbage_collection_age_cutoff = 0.5;
  options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(8));
  options.merge_operator = nullptr;
  options.optimize_filters_for_hits = true;
  BlockBasedTableOptions table;
  table.block_size = 12345;
  table.filter_policy.reset(rocksdb::NewRibbonFilterPolicy(9.9, 2));
  table.format_version = 4;
  table.checksum = rocksdb::kxxHash64;
  table.index_type = BlockBasedTableOptions::kTwoLevelIndexSearch;
  table.partition_filters = true;
  table.data_block_index_type =
      BlockBasedTableOptions::kDataBlockBinaryAndHash;
  table.metadata_block_size = 8192;
  table.cache_index_and_filter_blocks = true;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

TEST_CASE("Final options give the same OPTIONS text that they were read from",
          "[pipeline][options]") {
  std::vector<ColumnFamilyOptions> families(7);
  families[1] = UnusualOptions();
  families[2].compaction_style = rocksdb::kCompactionStyleUniversal;
  families[2].compaction_options_universal.max_merge_width = 17;
  families[2].comparator = rocksdb::ReverseBytewiseComparator();
  families[3].memtable_factory.reset(rocksdb::NewHashSkipListRepFactory(1000));
  families[3].prefix_extractor.reset(rocksdb::NewCappedPrefixTransform(3));
  families[4].num_levels = 1;
  families[4].memtable_factory =
      std::make_shared<rocksdb::SkipListFactory>(16);
  families[5].inplace_update_support = true;
  families[5].max_write_buffer_number = 5;
  families[6].compaction_style = rocksdb::kCompactionStyleFIFO;
  families[6].compaction_options_fifo.max_table_files_size = 77;
  families[6].ttl = 5000;
  BuildLimits limits;
  limits.fifo_ingests_to_level0 = true;
  rocksdb::DBOptions database;
  database.max_background_jobs = 7;
  database.allow_concurrent_memtable_write = false;
  database.wal_recovery_mode =
      rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  database.file_checksum_gen_factory =
      rocksdb::GetFileChecksumGenCrc32cFactory();
  for (size_t i = 0; i < families.size(); ++i) {
    INFO("family " << i);
    // RocksDB opens a FIFO family with a ttl only with max_open_files -1.
    database.max_open_files = i == 6 ? -1 : 300;
    const DatabaseDescription source = OptionsAfterOpen(database, families[i]);
    BuiltFamily built;
    REQUIRE_OK(Build(source.families[0], &built, limits));
    const DatabaseDescription target =
        OptionsAfterOpen(database, built.final_options);
    RequireEqualLists(source.families[0].options, target.families[0].options);
    RequireEqualLists(source.families[0].table_options,
                      target.families[0].table_options);
    REQUIRE(source.families[0].comparator == target.families[0].comparator);
  }
}

// RocksDB creates objects from names in OPTIONS, and a peer sends these names.
// So each kind of object needs a rule before a new RocksDB is used.
TEST_CASE("Every object among the linked RocksDB's options has a rule",
          "[pipeline][options]") {
  const FamilyDescription family = Described(ColumnFamilyOptions());
  const auto check = [](OptionScope scope,
                        const std::vector<NamedValue>& options) {
    size_t objects = 0;
    for (const NamedValue& option : options) {
      INFO(option.name << "=" << option.value);
      if (option.value == "nullptr" || option.value.starts_with("{id=") ||
          option.name.ends_with("_factory")) {
        CHECK(FindOptionRule(scope, option.name) != nullptr);
        objects++;
      }
    }
    REQUIRE(objects >= 2);
  };
  check(OptionScope::kFamily, family.options);
  check(OptionScope::kTable, family.table_options);
}

TEST_CASE("CheckOptions leaves out every number just outside its bounds",
          "[pipeline][options]") {
  for (OptionScope scope : {OptionScope::kFamily, OptionScope::kTable}) {
    for (const OptionRule* rule : OptionRules(scope)) {
      const bool integer = rule->kind == OptionKind::kInteger;
      if (!integer && rule->kind != OptionKind::kReal) {
        continue;
      }
      std::unordered_map<std::string, std::string> accepted;
      std::vector<std::string> notes;
      const auto accepts = [&](const std::string& value) {
        notes.clear();
        REQUIRE_OK(CheckOptions(scope, "here", {{rule->name, value}}, &accepted,
                                &notes));
        REQUIRE(accepted.empty() == (notes.size() == 1));
        return !accepted.empty();
      };
      // An option that this RocksDB does not have is left out at any value.
      if (!accepts(std::to_string(rule->high))) {
        continue;
      }
      INFO(rule->name);
      REQUIRE(accepts(std::to_string(rule->low)));
      for (const char* bad : {"", "x", "nan", "inf", "0x10", "1 ", "--1",
                              "1e99", "99999999999999999999999999"}) {
        INFO(bad);
        REQUIRE(!accepts(bad));
      }
      REQUIRE(!accepts(std::to_string(rule->low - 1)));
      if (rule->high != UINT64_MAX) {
        REQUIRE(!accepts(std::to_string(rule->high + 1)));
      }
    }
  }
}

TEST_CASE("BuildFamily leaves out values out of bounds and names them",
          "[pipeline][options]") {
  RequireLeftOut("num_levels", "0");
  RequireLeftOut("num_levels", "65");
  RequireLeftOut("write_buffer_size", "-1");
  RequireLeftOut("write_buffer_size", "99999999999999");
  RequireLeftOut("inplace_update_num_locks", "2000000000");
  RequireLeftOut("max_bytes_for_level_multiplier", "nan");
  RequireLeftOut("disable_auto_compactions", "maybe");
  RequireLeftOut("compression", "kXpressCompression");
  RequireLeftOut("compression", "kDisableCompressionOption");
  RequireLeftOut("compression_per_level", "kNoCompression:kFoo");
  RequireLeftOut("blob_compression_type", "kFoo");
  RequireLeftOut("compaction_options_universal", "{size_ratio=x;}");
}

TEST_CASE("BuildFamily refuses an unknown compaction style",
          "[pipeline][options]") {
  for (const char* value : {"kCompactionStyleFromTheFuture", "{id=x}"}) {
    FamilyDescription description = Described(ColumnFamilyOptions());
    Set(&description.options, "compaction_style", value);
    BuiltFamily built;
    const Status s = Build(description, &built);
    INFO(s.ToString());
    REQUIRE(EndStateOf(s) == EndState::kIncompatible);
    REQUIRE(MessageOf(s).find("--method clone") != std::string::npos);
    REQUIRE(MessageOf(s).find("compaction_style") != std::string::npos);
    REQUIRE(MessageOf(s).find("'fam'") != std::string::npos);
  }
}

// RocksDB 6.8 and 6.14 to 6.22 wrote these forms.
TEST_CASE(
    "BuildFamily accepts every form of a value that RocksDB loads",
    "[pipeline][options]") {
  FamilyDescription description = Described(ColumnFamilyOptions());
  Set(&description.options, "max_bytes_for_level_multiplier_additional",
      "1:{1}:{1}:{1}:{1}:{1}:{1}");
  Set(&description.options, "blob_file_size", "0");
  Set(&description.table_options, "read_amp_bytes_per_bit", "8589934592");
  BuiltFamily built;
  REQUIRE_OK(Build(description, &built));
  REQUIRE(TableOf(built.final_options).read_amp_bytes_per_bit == 0);
}

TEST_CASE("BuildFamily refuses an option given twice", "[pipeline][options]") {
  FamilyDescription description = Described(ColumnFamilyOptions());
  description.options.push_back(description.options.front());
  BuiltFamily built;
  REQUIRE(EndStateOf(Build(description, &built)) == EndState::kIncompatible);
}

TEST_CASE("BuildFamily drops unknown options and names them in a note",
          "[pipeline][options]") {
  FamilyDescription description = Described(ColumnFamilyOptions());
  Set(&description.options, "shape_of_things_to_come", "7");
  Set(&description.options, "compaction_pri", "kByMoonPhase");
  Set(&description.options, "compaction_filter", "RemoveEverything");
  Set(&description.options, "cf_paths", "/etc");
  Set(&description.options, "num_levels", "4");
  Set(&description.options, "compression_opts",
      "{level=3;colour=blue;strategy=1;}");
  Set(&description.options, "memtable_factory", "CustomRep:99");
  Set(&description.options, "prefix_extractor", "MyPrefix");
  Set(&description.table_options, "filter_policy", "MyFilter");
  BuiltFamily built;
  REQUIRE_OK(Build(description, &built));
  for (const char* name :
       {"shape_of_things_to_come", "compaction_pri", "compaction_filter",
        "cf_paths", "compression_opts", "memtable_factory", "prefix_extractor",
        "filter_policy"}) {
    INFO(name);
    CHECK(HasNote(built.notes, name));
  }
  const ColumnFamilyOptions& options = built.final_options;
  REQUIRE(options.num_levels == 4);  // known options are still applied
  REQUIRE(options.compression_opts.level == 3);
  REQUIRE(options.compression_opts.strategy == 1);
  REQUIRE(options.compaction_filter == nullptr);
  REQUIRE(options.cf_paths.empty());
  REQUIRE(options.compaction_pri == ColumnFamilyOptions().compaction_pri);
}

TEST_CASE(
    "BuildFamily keeps objects of a newer RocksDB that it can approximate",
    "[pipeline][options]") {
  FamilyDescription description = Described(ColumnFamilyOptions());
  Set(&description.table_options, "filter_policy",
      "{id=ribbonfilter:10:-1;bloom_before_level=-1;}");
  Set(&description.options, "prefix_extractor",
      "{id=rocksdb.FixedPrefix.8;}");
  BuiltFamily built;
  REQUIRE_OK(Build(description, &built));
  REQUIRE(TableOf(built.final_options).filter_policy != nullptr);
  REQUIRE(built.final_options.prefix_extractor->AsString() ==
          "rocksdb.FixedPrefix.8");
}

TEST_CASE("BuildFamily names all unknown options in one note",
          "[pipeline][options]") {
  FamilyDescription description = Described(ColumnFamilyOptions());
  BuiltFamily known;
  REQUIRE_OK(Build(description, &known));
  for (int i = 0; i < 24; ++i) {
    Set(&description.options, "option_of_tomorrow_" + std::to_string(i), "1");
  }
  BuiltFamily built;
  REQUIRE_OK(Build(description, &built));
  REQUIRE(built.notes.size() == known.notes.size() + 1);
  REQUIRE(HasNote(built.notes,
                  "options unknown to this RocksDB, kept in OPTIONS "
                  "unchanged: 'option_of_tomorrow_0', 'option_o"));
  for (const std::string& note : built.notes) {
    REQUIRE(note.size() < kMaxNoteBytes);
  }
}

TEST_CASE("BuildFamily bounds the numbers inside objects",
          "[pipeline][options]") {
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{
           {"memtable_factory",
            "{id=HashSkipListRepFactory;bucket_count=99999999999;}"},
           {"memtable_factory", "prefix_hash:99999999999"},
           {"memtable_factory", "VectorRepFactory:-2"},
           {"prefix_extractor", "rocksdb.FixedPrefix.99999999"},
           {"prefix_extractor", "rocksdb.FixedPrefix.{id=x}"},
           {"sst_partitioner_factory",
            "{id=SstPartitionerFixedPrefixFactory;length=123456789;}"}}) {
    INFO(name << "=" << value);
    FamilyDescription description = Described(ColumnFamilyOptions());
    Set(&description.options, name, value);
    BuiltFamily built;
    REQUIRE_OK(Build(description, &built));
    REQUIRE(HasNote(built.notes, name));
  }
}

TEST_CASE("BuildFamily bounds threads and dictionaries of compression",
          "[pipeline][options]") {
  FamilyDescription description = Described(ColumnFamilyOptions());
  for (const char* name : {"compression_opts", "bottommost_compression_opts"}) {
    Set(&description.options, name,
        "{parallel_threads=4000000000;max_dict_bytes=4000000000;"
        "zstd_max_train_bytes=4000000000;}");
  }
  BuiltFamily built;
  REQUIRE_OK(Build(description, &built));
  for (const rocksdb::CompressionOptions& made :
       {built.final_options.compression_opts,
        built.final_options.bottommost_compression_opts}) {
    REQUIRE(made.parallel_threads <= 256);
    REQUIRE(made.max_dict_bytes <= 64u << 20);
    REQUIRE(made.zstd_max_train_bytes <= 1u << 30);
  }
}

TEST_CASE("BuildFamily reads compression options in the old colon form",
          "[pipeline][options]") {
  FamilyDescription description = Described(ColumnFamilyOptions());
  Set(&description.options, "compression_opts", "-14:5:1:4096:8192:true");
  BuiltFamily built;
  REQUIRE_OK(Build(description, &built));
  REQUIRE(built.final_options.compression_opts.level == 5);
  REQUIRE(built.final_options.compression_opts.max_dict_bytes == 4096);
  REQUIRE(built.final_options.compression_opts.zstd_max_train_bytes == 8192);
  REQUIRE(built.final_options.compression_opts.enabled);
}

}  // namespace
}  // namespace sstferry::family_options_test
