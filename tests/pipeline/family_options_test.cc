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

namespace sstferry {
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

// Builds with one option changed and requires INCOMPATIBLE naming both.
void RequireOutOfBounds(const std::string& name, const std::string& value) {
  FamilyDescription description = Described(ColumnFamilyOptions());
  Set(&description.options, name, value);
  BuiltFamily built;
  const Status s = Build(description, &built);
  INFO(name << "=" << value << " -> " << s.ToString());
  REQUIRE(EndStateOf(s) == EndState::kIncompatible);
  REQUIRE(MessageOf(s).find(name) != std::string::npos);
  REQUIRE(MessageOf(s).find("'fam'") != std::string::npos);
}

class TempDir {
 public:
  TempDir() {
    std::string pattern =
        (fs::temp_directory_path() / "sstferry-options-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~TempDir() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string path() const { return path_; }

 private:
  std::string path_;
};

// The newest OPTIONS file of a database.
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

// Makes a database, closes it, and returns what its OPTIONS file says.
DatabaseDescription OptionsAfterOpen(rocksdb::DBOptions db_options,
                                     const ColumnFamilyOptions& options) {
  TempDir dir;
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

TEST_CASE("Final options leave the OPTIONS text they were read from",
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
    // A FIFO family with a ttl opens only so.
    database.max_open_files = i == 6 ? -1 : 300;
    const DatabaseDescription source = OptionsAfterOpen(database, families[i]);
    BuiltFamily built;
    REQUIRE_OK(Build(source.families[0], &built, limits));
    rocksdb::DBOptions final_database;
    REQUIRE_OK(BuildDatabaseOptions(source.options, &final_database,
                                    &built.notes));
    const DatabaseDescription target =
        OptionsAfterOpen(final_database, built.final_options);
    RequireEqualLists(source.options, target.options);
    RequireEqualLists(source.families[0].options, target.families[0].options);
    RequireEqualLists(source.families[0].table_options,
                      target.families[0].table_options);
    REQUIRE(source.families[0].comparator == target.families[0].comparator);
  }
}

TEST_CASE("The allow-list has a rule for every option of the linked RocksDB",
          "[pipeline][options]") {
  const FamilyDescription family = Described(ColumnFamilyOptions());
  std::vector<NamedValue> database;
  REQUIRE_OK(DescribeDatabase(rocksdb::DBOptions(), &database));
  REQUIRE(database.size() > 50);
  REQUIRE(family.options.size() > 50);
  REQUIRE(family.table_options.size() > 20);
  for (const NamedValue& option : database) {
    INFO(option.name);
    CHECK(FindOptionRule(OptionScope::kDatabase, option.name) != nullptr);
  }
  for (const NamedValue& option : family.options) {
    INFO(option.name);
    CHECK(FindOptionRule(OptionScope::kFamily, option.name) != nullptr);
  }
  for (const NamedValue& option : family.table_options) {
    INFO(option.name);
    CHECK(FindOptionRule(OptionScope::kTable, option.name) != nullptr);
  }
}

TEST_CASE("BuildFamily refuses every number just outside its bounds",
          "[pipeline][options]") {
  for (OptionScope scope : {OptionScope::kDatabase, OptionScope::kFamily,
                            OptionScope::kTable}) {
    for (const OptionRule* rule : OptionRules(scope)) {
      const bool integer = rule->kind == OptionKind::kInteger;
      if (!integer && rule->kind != OptionKind::kReal) {
        continue;
      }
      std::unordered_map<std::string, std::string> accepted;
      std::vector<std::string> notes;
      auto check = [&](const std::string& value) {
        return CheckOptions(scope, "here", {{rule->name, value}}, &accepted,
                            &notes);
      };
      // An option this RocksDB lacks is ignored whatever its value.
      if (!check(std::to_string(rule->high)).ok() || accepted.empty()) {
        REQUIRE(accepted.empty());
        continue;
      }
      INFO(rule->name);
      REQUIRE(check(std::to_string(rule->low)).ok());
      for (const char* bad : {"", "x", "nan", "inf", "0x10", "1 ", "--1", "1e99",
                              "99999999999999999999999999"}) {
        INFO(bad);
        REQUIRE(EndStateOf(check(bad)) == EndState::kIncompatible);
      }
      REQUIRE(!check(std::to_string(rule->low - 1)).ok());
      if (rule->high != UINT64_MAX) {
        REQUIRE(!check(std::to_string(rule->high + 1)).ok());
      }
    }
  }
}

TEST_CASE("BuildFamily names family and option of a value out of bounds",
          "[pipeline][options]") {
  RequireOutOfBounds("num_levels", "0");
  RequireOutOfBounds("num_levels", "65");
  RequireOutOfBounds("write_buffer_size", "-1");
  RequireOutOfBounds("write_buffer_size", "99999999999999");
  RequireOutOfBounds("inplace_update_num_locks", "2000000000");
  RequireOutOfBounds("max_bytes_for_level_multiplier", "nan");
  RequireOutOfBounds("disable_auto_compactions", "maybe");
  RequireOutOfBounds("compaction_style", "kCompactionStyleFromTheFuture");
  RequireOutOfBounds("compaction_style", "{id=x}");
  RequireOutOfBounds("max_bytes_for_level_multiplier_additional", "1:-5");
  RequireOutOfBounds("compression", "kXpressCompression");
  RequireOutOfBounds("compression", "kDisableCompressionOption");
  RequireOutOfBounds("compression_per_level", "kNoCompression:kFoo");
  RequireOutOfBounds("blob_compression_type", "kFoo");
  RequireOutOfBounds("compression_opts", "{max_dict_bytes=99999999999;}");
  RequireOutOfBounds("compression_opts", "{level=1;level=2;}");
  RequireOutOfBounds("compaction_options_universal", "{size_ratio=-1;}");
  RequireOutOfBounds("compaction_options_fifo",
                     "{max_table_files_size={{{{{{1}}}}}};}");
  std::string long_list = "1";
  for (int i = 0; i < 100; ++i) {
    long_list += ":1";
  }
  RequireOutOfBounds("max_bytes_for_level_multiplier_additional", long_list);
}

TEST_CASE("BuildFamily refuses an option given twice", "[pipeline][options]") {
  FamilyDescription description = Described(ColumnFamilyOptions());
  description.options.push_back(description.options.front());
  BuiltFamily built;
  REQUIRE(EndStateOf(Build(description, &built)) == EndState::kIncompatible);
}

TEST_CASE("BuildFamily drops what it does not know and says so",
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
        "cf_paths", "colour", "memtable_factory", "prefix_extractor",
        "filter_policy"}) {
    INFO(name);
    CHECK(HasNote(built.notes, name));
  }
  const ColumnFamilyOptions& options = built.final_options;
  REQUIRE(options.num_levels == 4);  // the known ones still count
  REQUIRE(options.compression_opts.level == 3);
  REQUIRE(options.compression_opts.strategy == 1);
  REQUIRE(options.compaction_filter == nullptr);
  REQUIRE(options.cf_paths.empty());
  REQUIRE(options.compaction_pri == ColumnFamilyOptions().compaction_pri);
}

TEST_CASE("BuildFamily keeps objects of a newer RocksDB it can approximate",
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

TEST_CASE("BuildFamily names all options it does not know in one note",
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
  REQUIRE(HasNote(built.notes, "not known to this RocksDB and dropped: "
                               "'option_of_tomorrow_0', 'option_of_t"));
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
  RequireOutOfBounds("compression_opts", "-14:5:1:999999999999");
}

TEST_CASE("BuildDatabaseOptions drops the source host's paths and objects",
          "[pipeline][options]") {
  rocksdb::DBOptions options;
  std::vector<std::string> notes;
  REQUIRE_OK(BuildDatabaseOptions({{"wal_dir", "/var/wal"},
                                   {"db_log_dir", "/var/log"},
                                   {"db_host_id", "alpha"},
                                   {"wal_filter", "Filter"},
                                   {"error_if_exists", "true"},
                                   {"max_open_files", "99"}},
                                  &options, &notes));
  for (const char* name : {"wal_dir", "db_log_dir", "db_host_id", "wal_filter",
                           "error_if_exists"}) {
    INFO(name);
    CHECK(HasNote(notes, name));
  }
  REQUIRE(options.wal_dir.empty());
  REQUIRE(options.db_log_dir.empty());
  REQUIRE(options.db_host_id == rocksdb::DBOptions().db_host_id);
  REQUIRE(options.wal_filter == nullptr);
  REQUIRE(!options.error_if_exists);
  REQUIRE(options.max_open_files == 99);
}

}  // namespace
}  // namespace sstferry
