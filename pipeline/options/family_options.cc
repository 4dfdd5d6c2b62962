#include "pipeline/options/family_options.h"

#include <algorithm>
#include <unordered_map>

#include "format/end_state.h"
#include "format/limits.h"
#include "format/rocksdb/sst_block.h"
#include "pipeline/options/option_rules.h"
#include "pipeline/options/options_file.h"
#include "rocksdb/convenience.h"
#include "rocksdb/table.h"

namespace sstferry {
namespace {

using rocksdb::BlockBasedTableOptions;
using rocksdb::ColumnFamilyOptions;
using rocksdb::DBOptions;
using rocksdb::Status;
using OptionMap = std::unordered_map<std::string, std::string>;

constexpr size_t kPullWriteBufferBytes = 1u << 20;
constexpr size_t kPullCacheBytes = 4u << 20;
// RocksDB's minimum for write_buffer_size.
constexpr size_t kMinWriteBufferBytes = 64u << 10;
// Minimum size of a hashed memtable: twice the maximum size of its buckets (see
// option_table.h).
constexpr size_t kMinHashedBufferBytes = 32u << 20;
constexpr uint64_t kMaxDictBufferBytes = 8u << 20;
constexpr uint32_t kMaxCompressionThreads = 256;
constexpr uint32_t kMaxDictBytes = 64u << 20;
constexpr uint32_t kMaxTrainBytes = 1u << 30;
// More than the possible number of files in level 0. RocksDB adds 1 to this
// value, so it must be less than INT_MAX.
constexpr int kNeverByFileCount = 1 << 30;

// Returns settings for RocksDB's parser. If `lenient` is true, the parser
// ignores members of structs that it does not know.
rocksdb::ConfigOptions Config(bool lenient) {
  rocksdb::ConfigOptions config;
  config.ignore_unknown_options = lenient;
  config.invoke_prepare_options = false;
  return config;
}

Status FromMap(const OptionMap& map, ColumnFamilyOptions* out,
               bool lenient = false) {
  const ColumnFamilyOptions base = *out;
  return rocksdb::GetColumnFamilyOptionsFromMap(Config(lenient), base, map,
                                                out);
}

Status FromMap(const OptionMap& map, BlockBasedTableOptions* out,
               bool lenient = false) {
  const BlockBasedTableOptions base = *out;
  return rocksdb::GetBlockBasedTableOptionsFromMap(Config(lenient), base, map,
                                                   out);
}

// Applies a single option. Called for each option after RocksDB has rejected
// all options together.
template <typename Options>
Status ApplyOne(OptionScope scope, const std::string& where,
                const std::string& name, const std::string& value,
                Options* out, std::vector<std::string>* notes) {
  Options next = *out;
  Status s = FromMap({{name, value}}, &next);
  const OptionRule* rule = FindOptionRule(scope, name);
  if (!s.ok() && rule != nullptr && rule->kind == OptionKind::kObject) {
    // Tries the object's id without its members, because a newer RocksDB may
    // have members that this RocksDB does not know.
    std::string id;
    next = *out;
    if (CheckObject(value, *rule, &id, nullptr).ok() && id != value) {
      s = FromMap({{name, id}}, &next);
    }
  }
  if (s.ok()) {
    *out = next;
    return s;
  }
  if (rule == nullptr && value.starts_with('{')) {
    next = *out;
    if (FromMap({{name, value}}, &next, /*lenient=*/true).ok()) {
      *out = next;
      AddNote(notes, where + ": option " + Quoted(name) +
                         ": this process ignores the members of its value "
                         "that this RocksDB does not know");
      return Status::OK();
    }
  }
  const std::string what = where + ": option " + Quoted(name);
  if (rule != nullptr && rule->kind == OptionKind::kVitalName) {
    return OnlyAsFiles(EndState::kIncompatible,
                       what + ": expected a value known to this RocksDB, "
                              "found " + Quoted(value));
  }
  AddNote(notes, what + " is not used by this process: this RocksDB does not "
                        "accept " + Quoted(value));
  return Status::OK();
}

template <typename Options>
Status Apply(OptionScope scope, const std::string& where,
             const std::vector<NamedValue>& options, Options* out,
             std::vector<std::string>* notes) {
  OptionMap accepted;
  RETURN_IF_ERROR(CheckOptions(scope, where, options, &accepted, notes));
  Options all = *out;
  if (FromMap(accepted, &all).ok()) {
    *out = all;
    return Status::OK();
  }
  for (const NamedValue& option : options) {  // in order: same notes each time
    const auto it = accepted.find(option.name);
    if (it != accepted.end()) {
      RETURN_IF_ERROR(
          ApplyOne(scope, where, it->first, it->second, out, notes));
    }
  }
  return Status::OK();
}

std::string ValueOf(const std::vector<NamedValue>& options,
                    const std::string& name) {
  for (const NamedValue& option : options) {
    if (option.name == name) {
      return option.value;
    }
  }
  return "";
}

// Adds a note if RocksDB did not make an object. RocksDB returns OK without an
// object if it does not know the id.
void NoteMissingObject(const std::string& where, const std::string& name,
                       const std::string& value, bool made,
                       std::vector<std::string>* notes) {
  const OptionRule* rule = FindOptionRule(OptionScope::kFamily, name);
  if (rule == nullptr) {
    rule = FindOptionRule(OptionScope::kTable, name);
  }
  std::string id;
  // If the id is not allowed, CheckOptions() has already added a note.
  if (!made && !IsNullObject(value) &&
      CheckObject(value, *rule, &id, nullptr).ok()) {
    AddNote(notes, where + ": option " + Quoted(name) +
                       " was dropped: this RocksDB cannot make " +
                       Quoted(value));
  }
}

// Builds one family step by step.
class FamilyBuilder {
 public:
  FamilyBuilder(const FamilyDescription& description,
                const OperatorRegistry& registry, const BuildLimits& limits,
                BuiltFamily* out)
      : description_(description),
        registry_(registry),
        limits_(limits),
        where_("column family " + Quoted(description.name)),
        cache_(limits.cache != nullptr
                   ? limits.cache
                   : rocksdb::NewLRUCache(kPullCacheBytes)),
        out_(out) {}

  [[nodiscard]] Status Build() {
    RETURN_IF_ERROR(FindComparator(description_.name, description_.comparator,
                                   registry_,
                                   &out_->final_options.comparator));
    RETURN_IF_ERROR(SetFamilyOptions());
    RETURN_IF_ERROR(SetTableOptions());
    RETURN_IF_ERROR(ChooseFormatVersion());
    RETURN_IF_ERROR(CheckStyle());
    out_->final_options.table_factory.reset(
        rocksdb::NewBlockBasedTableFactory(table_));
    SetPullOptions();
    return Status::OK();
  }

 private:
  // Sets the family's options. If the application has registered a prefix
  // extractor with the same name as RocksDB's, uses the application's.
  Status SetFamilyOptions() {
    ColumnFamilyOptions* options = &out_->final_options;
    std::vector<NamedValue> rest = description_.options;
    const std::string prefix = ValueOf(rest, "prefix_extractor");
    auto registered = FindRegisteredPrefixExtractor(prefix, registry_);
    if (registered != nullptr) {
      std::erase_if(rest, [](const NamedValue& option) {
        return option.name == "prefix_extractor";
      });
    }
    RETURN_IF_ERROR(FindMergeOperator(
        description_.name, description_.merge_operator, registry_,
        &options->merge_operator, &out_->notes));
    RETURN_IF_ERROR(
        Apply(OptionScope::kFamily, where_, rest, options, &out_->notes));
    if (registered != nullptr) {
      options->prefix_extractor = registered;
    }
    NoteMissingObject(where_, "prefix_extractor", prefix,
                      options->prefix_extractor != nullptr, &out_->notes);
    if (options->prefix_extractor == nullptr && !IsNullObject(prefix)) {
      AddNote(&out_->advice,
              where_ + ": the prefix extractor " + Quoted(prefix) +
                       " is unknown here: rebuilt tables have no prefix "
                       "filters until they are compacted; a clone keeps the "
                       "filters");
    }
    BoundCompression(&options->compression_opts);
    BoundCompression(&options->bottommost_compression_opts);
    BoundMemtables();
    if (options->enable_blob_files) {
      AddNote(&out_->advice,
              where_ + ": blob values arrive inside SST files, where they stay "
                       "until compactions separate them again; a clone keeps "
                       "the blob files");
    }
    AdviseAges();
    return Status::OK();
  }

  // Adds advice if RocksDB drops entries because of their age, or chooses their
  // level by their age: the age of entries in new tables starts at 0. In other
  // cases, the age only decides when RocksDB compacts.
  void AdviseAges() {
    const ColumnFamilyOptions& options = out_->final_options;
    // 0 means no age limit. The default is another value, for which RocksDB
    // chooses 30 days.
    if (options.compaction_style == rocksdb::kCompactionStyleFIFO &&
        (options.ttl != 0 || options.periodic_compaction_seconds != 0)) {
      AddNote(&out_->advice,
              where_ + ": FIFO compaction drops entries by their age (ttl), "
                       "and ages begin anew with the pull; a clone keeps the "
                       "ages");
    }
    if (options.preclude_last_level_data_seconds != 0) {
      AddNote(&out_->advice,
              where_ + ": all entries arrive in the last level, also recent "
                       "ones, which preclude_last_level_data_seconds would "
                       "keep out of it; a clone keeps the ages");
    }
  }

  // Limits numbers from a peer that decide how many threads and how much memory
  // this process uses.
  static void BoundCompression(rocksdb::CompressionOptions* options) {
    options->parallel_threads =
        std::min(options->parallel_threads, kMaxCompressionThreads);
    options->max_dict_bytes =
        std::min(options->max_dict_bytes, kMaxDictBytes);
    options->zstd_max_train_bytes =
        std::min(options->zstd_max_train_bytes, kMaxTrainBytes);
  }

  // Limits the sizes of memtables. If a memtable is full before its first
  // entry, a RocksDB with assertions aborts the process.
  void BoundMemtables() {
    ColumnFamilyOptions* options = &out_->final_options;
    const size_t bytes =
        std::max(options->write_buffer_size, kMinWriteBufferBytes);
    options->write_buffer_size = bytes;
    for (const auto& [name, size] :
         {std::pair("arena_block_size", &options->arena_block_size),
          std::pair("memtable_huge_page_size",
                    &options->memtable_huge_page_size)}) {
      if (*size > bytes) {
        AddNote(&out_->notes, where_ + ": option " + Quoted(name) +
                                  " was dropped: it is larger than "
                                  "write_buffer_size");
        *size = 0;
      }
    }
    const std::string memtable = options->memtable_factory->Name();
    if (memtable.starts_with("Hash") && bytes < kMinHashedBufferBytes) {
      AddNote(&out_->notes, where_ + ": option 'memtable_factory' was "
                                     "dropped: its buckets would fill "
                                     "write_buffer_size");
      options->memtable_factory = std::make_shared<rocksdb::SkipListFactory>();
    }
  }

  Status SetTableOptions() {
    table_.block_cache = cache_;
    if (description_.table_factory == "PlainTable") {
      table_.format_version = kPortableTableFormatVersion;
      AddNote(&out_->advice, where_ + ": plain tables become block-based "
                                      "tables with default table options; a "
                                      "clone keeps plain tables");
      return Status::OK();
    }
    if (description_.table_factory != "BlockBasedTable") {
      return OnlyAsFiles(
          EndState::kRefused,
          where_ + ": expected block-based or plain tables, found " +
              Quoted(description_.table_factory));
    }
    // The default of RocksDB may be a version that some supported releases
    // cannot read.
    table_.format_version = kPortableTableFormatVersion;
    Status s = Apply(OptionScope::kTable, where_, description_.table_options,
                     &table_, &out_->notes);
    if (s.ok()) {
      table_.block_cache = table_.no_block_cache ? nullptr : cache_;
      const std::string filter =
          ValueOf(description_.table_options, "filter_policy");
      if (table_.index_type == BlockBasedTableOptions::kHashSearch &&
          out_->final_options.prefix_extractor == nullptr) {
        AddNote(&out_->notes,
                where_ + ": option 'index_type' was dropped: RocksDB has no "
                         "hash index without a prefix extractor");
        table_.index_type = BlockBasedTableOptions::kBinarySearch;
      }
      NoteMissingObject(where_, "filter_policy", filter,
                        table_.filter_policy != nullptr, &out_->notes);
      if (table_.filter_policy == nullptr && !IsNullObject(filter)) {
        AddNote(&out_->advice,
                where_ + ": the filter policy " + Quoted(filter) +
                         " is unknown here: rebuilt tables have no filters "
                         "until they are compacted; a clone keeps the filters");
      }
    }
    return s;
  }

  // Changes `version` to the nearest version that both sides can read and that
  // RocksDB can write.
  uint32_t Fit(uint32_t version, const std::string& what) {
    const uint32_t max_version =
        std::min(limits_.max_format_version, kMaxTableFormatVersion);
    const uint32_t fitted =
        std::clamp(version, kMinTableFormatVersion,
                   std::max(max_version, kMinTableFormatVersion));
    if (fitted != version) {
      AddNote(&out_->notes, where_ + ": " + what + " " +
                                std::to_string(version) + " changed to " +
                                std::to_string(fitted));
    }
    return fitted;
  }

  Status ChooseFormatVersion() {
    const uint32_t max_version =
        std::min(limits_.max_format_version, kMaxTableFormatVersion);
    if (limits_.format_version != 0 &&
        (limits_.format_version < kMinTableFormatVersion ||
         limits_.format_version > max_version)) {
      return MakeStatus(EndState::kIncompatible,
                        where_ + ": expected a format_version of " +
                            std::to_string(kMinTableFormatVersion) + " to " +
                            std::to_string(max_version) + ", found " +
                            std::to_string(limits_.format_version));
    }
    table_.format_version = Fit(table_.format_version, "format_version");
    out_->format_version =
        limits_.format_version != 0 ? limits_.format_version
        : limits_.source_files_format_version != 0
            ? Fit(limits_.source_files_format_version,
                  "format_version of the source's files")
            : table_.format_version;
    return Status::OK();
  }

  Status CheckStyle() {
    const ColumnFamilyOptions& options = out_->final_options;
    const bool fifo =
        options.compaction_style == rocksdb::kCompactionStyleFIFO;
    if (fifo && !limits_.fifo_ingests_to_level0) {
      return OnlyAsFiles(
          EndState::kRefused,
          where_ + ": a family with FIFO compaction needs RocksDB 9.3 or later "
                   "on the target; earlier releases do not ingest into its "
                   "level 0");
    }
    out_->keeps_level0 = fifo || options.num_levels == 1;
    return Status::OK();
  }

  void SetPullOptions() {
    ColumnFamilyOptions* pull = &out_->pull_options;
    *pull = out_->final_options;
    const bool fifo = pull->compaction_style == rocksdb::kCompactionStyleFIFO;
    const bool universal =
        pull->compaction_style == rocksdb::kCompactionStyleUniversal;
    // Leveled compaction needs at least two levels. A universal family with one
    // level therefore keeps its style.
    const bool as_is =
        fifo || (universal && (limits_.universal_ingests_to_last_level ||
                               out_->keeps_level0));
    if (!as_is) {
      pull->compaction_style = rocksdb::kCompactionStyleLevel;
    }
    pull->disable_auto_compactions = true;
    pull->level0_file_num_compaction_trigger = kNeverByFileCount;
    pull->level0_slowdown_writes_trigger = kNeverByFileCount;
    pull->level0_stop_writes_trigger = kNeverByFileCount;
    pull->soft_pending_compaction_bytes_limit = 0;
    pull->hard_pending_compaction_bytes_limit = 0;
    pull->ttl = 0;
    pull->periodic_compaction_seconds = 0;
    pull->preclude_last_level_data_seconds = 0;
    pull->preserve_internal_time_seconds = 0;
    pull->write_buffer_size = kPullWriteBufferBytes;
    pull->arena_block_size = 0;
    pull->max_write_buffer_number = 2;
    pull->min_write_buffer_number_to_merge = 1;
    pull->max_write_buffer_size_to_maintain = 0;
    pull->memtable_prefix_bloom_size_ratio = 0;
    pull->memtable_huge_page_size = 0;
    pull->memtable_factory = std::make_shared<rocksdb::SkipListFactory>();
    pull->memtable_insert_with_hint_prefix_extractor = nullptr;
    pull->inplace_update_support = false;
    pull->sst_partitioner_factory = nullptr;
    pull->enable_blob_files = false;
    QuietFamily(pull);
    BlockBasedTableOptions table = table_;
    table.no_block_cache = false;
    table.block_cache = cache_;
    table.cache_index_and_filter_blocks = true;
    table.pin_l0_filter_and_index_blocks_in_cache = false;
    table.pin_top_level_index_and_filter = false;
    table.metadata_cache_options = rocksdb::MetadataCacheOptions();
    table.prepopulate_block_cache =
        BlockBasedTableOptions::PrepopulateBlockCache::kDisable;
    table.read_amp_bytes_per_bit = 0;
    pull->table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  }

  const FamilyDescription& description_;
  const OperatorRegistry& registry_;
  const BuildLimits& limits_;
  const std::string where_;
  const std::shared_ptr<rocksdb::Cache> cache_;
  BlockBasedTableOptions table_;
  BuiltFamily* const out_;
};

void BoundDictionary(rocksdb::CompressionOptions* options) {
  options->parallel_threads = 1;
  if (options->max_dict_buffer_bytes == 0 ||
      options->max_dict_buffer_bytes > kMaxDictBufferBytes) {
    options->max_dict_buffer_bytes = kMaxDictBufferBytes;
  }
}

}  // namespace

Status BuildFamily(const FamilyDescription& description,
                   const OperatorRegistry& registry, const BuildLimits& limits,
                   BuiltFamily* out) {
  *out = BuiltFamily();
  return FamilyBuilder(description, registry, limits, out).Build();
}

Status ChunkOptions(const ColumnFamilyOptions& family, uint32_t format_version,
                    const RocksDbRelease& application, bool marked_blocks,
                    rocksdb::Options* out) {
  if (format_version < kMinTableFormatVersion ||
      format_version > kMaxTableFormatVersion) {
    return MakeStatus(EndState::kIncompatible,
                      "chunks: expected a format_version of " +
                          std::to_string(kMinTableFormatVersion) + " to " +
                          std::to_string(kMaxTableFormatVersion) + ", found " +
                          std::to_string(format_version));
  }
  BlockBasedTableOptions table;
  if (family.table_factory == nullptr ||
      !family.table_factory->IsInstanceOf("PlainTable")) {
    const auto* own =
        family.table_factory == nullptr
            ? nullptr
            : family.table_factory->GetOptions<BlockBasedTableOptions>();
    if (own == nullptr) {
      return OnlyAsFiles(EndState::kRefused,
                            "chunks: expected block-based or plain tables, "
                            "found another table factory");
    }
    table = *own;
  }
  *out = rocksdb::Options(DBOptions(), family);
  table.format_version = format_version;
  table.no_block_cache = true;
  table.block_cache = nullptr;
  table.persistent_cache = nullptr;
  table.cache_index_and_filter_blocks = false;
  table.pin_l0_filter_and_index_blocks_in_cache = false;
  table.prepopulate_block_cache =
      BlockBasedTableOptions::PrepopulateBlockCache::kDisable;
  UseStandardIndex(&table);
  BoundPadding(kMaxSstPaddingBytes, &table);
  if (!marked_blocks) {
    UnmarkBlocks(&table);
  }
  if (table.checksum == rocksdb::kXXH3 && application.is_known() &&
      application < kReadsXxh3Checksums) {
    table.checksum = rocksdb::kCRC32c;
  }
  const bool keeps_level0 =
      family.compaction_style == rocksdb::kCompactionStyleFIFO ||
      family.num_levels == 1;
  if (family.optimize_filters_for_hits && !keeps_level0) {
    table.filter_policy = nullptr;
    table.partition_filters = false;
  }
  out->table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  BoundDictionary(&out->compression_opts);
  BoundDictionary(&out->bottommost_compression_opts);
  UseBuiltInCompression(out);
  out->sample_for_compression = 0;
  out->compaction_filter = nullptr;
  out->compaction_filter_factory = nullptr;
  out->sst_partitioner_factory = nullptr;
  out->compaction_thread_limiter = nullptr;
  out->enable_blob_files = false;
  out->blob_cache = nullptr;
  out->memtable_factory = std::make_shared<rocksdb::SkipListFactory>();
  return Status::OK();
}

}  // namespace sstferry
