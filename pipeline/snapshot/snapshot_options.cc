#include "pipeline/snapshot/snapshot_options.h"

#include <algorithm>
#include <set>
#include <utility>

#include "format/end_state.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/options/options_file.h"
#include "pipeline/options/options_text.h"
#include "rocksdb/comparator.h"
#include "rocksdb/convenience.h"
#include "rocksdb/memtablerep.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/table.h"

namespace sstferry {
namespace {

using rocksdb::ColumnFamilyDescriptor;
using rocksdb::ColumnFamilyOptions;
using rocksdb::DBOptions;
using rocksdb::Status;

constexpr size_t kSharedCacheBytes = 8 << 20;
// Minimum size of a memtable. Smaller memtables would be flushed to too many
// files.
constexpr uint64_t kMinWriteBufferBytes = 1 << 20;
// format_version of the tables that the copy writes. RocksDB 6.6 and later can
// read it.
constexpr uint32_t kOwnFormatVersion = 5;
constexpr int kNever = 1 << 30;
// Value in OPTIONS that has an operator's name but not its delimiter. Newer
// RocksDB writes it if the delimiter is empty, and older RocksDB for any
// delimiter. RocksDB uses "," when it reads this value.
constexpr char kNoDelimiter[] = "StringAppendOperator";

// Merge operator for families that the caller does not want. RocksDB must open
// all families, and needs an operator to replay merge operands. Nobody reads
// the result.
class DiscardingMerge : public rocksdb::MergeOperator {
 public:
  const char* Name() const override { return "sstferry.DiscardingMerge"; }
  bool FullMergeV2(const MergeOperationInput&,
                   MergeOperationOutput* output) const override {
    output->new_value.clear();
    return true;
  }
};

void ResolveComparator(const std::string& comparator,
                       const OperatorRegistry& registry,
                       FamilyOpening* family) {
  ColumnFamilyOptions& options = family->source;
  if (comparator.empty() || comparator == options.comparator->Name()) {
    return;
  }
  for (const rocksdb::Comparator* known : registry.comparators) {
    if (comparator == known->Name()) {
      options.comparator = known;
      return;
    }
  }
  const rocksdb::Comparator* built_in = nullptr;
  const Status known = rocksdb::Comparator::CreateFromString(
      rocksdb::ConfigOptions(), comparator, &built_in);
  if (known.ok() && built_in != nullptr) {
    options.comparator = built_in;
    return;
  }
  family->unknown_comparator = comparator;
}

// Sets the comparator and operators that RocksDB's loader did not find, because
// only the application has them.
void ResolveObjects(const OptionsText& text, const ManifestFamily& manifest,
                    const OperatorRegistry& registry, FamilyOpening* family) {
  ColumnFamilyOptions& options = family->source;
  ResolveComparator(text.FamilyObject(family->name, "comparator"), registry,
                    family);
  if (family->unknown_comparator.empty()) {
    // If the MANIFEST has another comparator than OPTIONS, uses that of the
    // MANIFEST.
    ResolveComparator(manifest.comparator, registry, family);
  }
  const std::string merge = text.FamilyObject(family->name, "merge_operator");
  if (text.FamilyText(family->name, "merge_operator") == kNoDelimiter) {
    options.merge_operator.reset();
  }
  // Uses the application's operator if it has the same name as one of RocksDB's
  // operators.
  for (const auto& known : registry.merge_operators) {
    if (merge == known->Name()) {
      options.merge_operator = known;
    }
  }
  if (!merge.empty() && options.merge_operator == nullptr) {
    family->unknown_merge_operator = merge;
  }
  const std::string prefix =
      text.FamilyObject(family->name, "prefix_extractor");
  for (const auto& known : registry.prefix_extractors) {
    if (prefix == known->Name()) {
      options.prefix_extractor = known;
    }
  }
}

void ClearDatabaseOptions(DBOptions* db) {
  db->env = rocksdb::Env::Default();
  db->create_if_missing = false;
  db->create_missing_column_families = false;
  db->error_if_exists = false;
  // RocksDB must not write outside the private directory.
  db->wal_dir.clear();
  db->db_log_dir.clear();
  db->db_paths.clear();
  // All files in the MANIFEST exist and have the right sizes, so RocksDB must
  // not ignore any error.
  db->paranoid_checks = true;
  // wal_recovery_mode, allow_2pc and track_and_verify_wals_in_manifest stay as
  // they are, so that recovery treats the WALs as the source's application
  // would.
  db->best_efforts_recovery = false;
  db->avoid_flush_during_recovery = false;
  db->avoid_flush_during_shutdown = true;
  db->recycle_log_file_num = 0;
  db->WAL_ttl_seconds = 0;
  db->WAL_size_limit_MB = 0;
  db->manual_wal_flush = false;
  db->max_total_wal_size = 0;
  db->db_write_buffer_size = 0;
  db->write_buffer_manager.reset();
  db->atomic_flush = false;
  db->two_write_queues = false;
  db->unordered_write = false;
  db->enable_pipelined_write = false;
  db->use_direct_reads = false;
  db->use_direct_io_for_flush_and_compaction = false;
  db->allow_mmap_writes = false;
  db->stats_dump_period_sec = 0;
  db->stats_persist_period_sec = 0;
  db->persist_stats_to_disk = false;
  db->skip_stats_update_on_db_open = true;
  db->enforce_single_del_contracts = false;
  // OPTIONS may have any value here; with some values RocksDB ends the process.
  db->table_cache_numshardbits = rocksdb::DBOptions().table_cache_numshardbits;
  db->log_readahead_size = 0;
  db->max_background_jobs = 2;
  db->max_subcompactions = 1;
  db->listeners.clear();
  db->statistics.reset();
  db->rate_limiter.reset();
  db->sst_file_manager.reset();
  db->row_cache.reset();
  db->compaction_service.reset();
  db->info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  QuietDatabase(db);
}

// Makes the copy write block-based tables, which accept any key. It can still
// read the application's tables. If RocksDB writes a plain table or a table
// with a hash index, and a key is outside the domain of the prefix extractor,
// RocksDB aborts the process.
void UseCopyTables(const std::shared_ptr<rocksdb::Cache>& cache,
                   ColumnFamilyOptions* options) {
  const std::shared_ptr<rocksdb::TableFactory> own = options->table_factory;
  const auto* table = own->GetOptions<rocksdb::BlockBasedTableOptions>();
  rocksdb::BlockBasedTableOptions bounded;
  if (table != nullptr) {
    bounded = *table;
  }
  bounded.block_cache = cache;
  bounded.no_block_cache = false;
  bounded.persistent_cache.reset();
  bounded.prepopulate_block_cache =
      rocksdb::BlockBasedTableOptions::PrepopulateBlockCache::kDisable;
  if (!HasCompressionManager(*options)) {
    bounded.format_version =
        std::min(bounded.format_version, kOwnFormatVersion);
  }
  UseStandardIndex(&bounded);
  UnmarkBlocks(&bounded);
  options->table_factory.reset(rocksdb::NewBlockBasedTableFactory(bounded));
  if (table == nullptr) {
    const auto own_if = [&own](const char* kind) {
      return own->IsInstanceOf(kind) ? own : nullptr;
    };
    options->table_factory.reset(rocksdb::NewAdaptiveTableFactory(
        options->table_factory, options->table_factory, own_if("PlainTable"),
        own_if("CuckooTable")));
  }
}

void ClearFamilyOptions(const std::shared_ptr<rocksdb::Cache>& cache,
                        ColumnFamilyOptions* options) {
  options->cf_paths.clear();
  // No entry may expire in the copy. In addition, FIFO compaction with a ttl
  // requires that all files are open.
  options->ttl = 0;
  options->periodic_compaction_seconds = 0;
  options->preclude_last_level_data_seconds = 0;
  options->preserve_internal_time_seconds = 0;
  options->disable_auto_compactions = true;
  options->level0_file_num_compaction_trigger = kNever;
  options->level0_slowdown_writes_trigger = kNever;
  options->level0_stop_writes_trigger = kNever;
  options->soft_pending_compaction_bytes_limit = 0;
  options->hard_pending_compaction_bytes_limit = 0;
  options->compaction_filter = nullptr;
  options->compaction_filter_factory.reset();
  options->sst_partitioner_factory.reset();
  options->blob_cache.reset();
  options->prepopulate_blob_cache = rocksdb::PrepopulateBlobCache::kDisable;
  // The tables that the copy writes are temporary. Compression would take time,
  // and this build of RocksDB may not support the algorithm.
  options->compression = rocksdb::kNoCompression;
  options->compression_per_level.clear();
  options->bottommost_compression = rocksdb::kDisableCompressionOption;
  options->compression_opts = rocksdb::CompressionOptions();
  options->bottommost_compression_opts = rocksdb::CompressionOptions();
  options->blob_compression_type = rocksdb::kNoCompression;
  options->memtable_factory = std::make_shared<rocksdb::SkipListFactory>();
  options->memtable_prefix_bloom_size_ratio = 0;
  options->memtable_huge_page_size = 0;
  options->memtable_insert_with_hint_prefix_extractor.reset();
  options->inplace_update_support = false;
  options->arena_block_size = 0;
  options->max_write_buffer_number = 2;
  options->min_write_buffer_number_to_merge = 1;
  options->max_write_buffer_size_to_maintain = 0;
  QuietFamily(options);
  UseCopyTables(cache, options);
}

Status CheckFamily(const FamilyOpening& family, OpenPlan* plan) {
  const bool stamped = family.source.comparator->timestamp_size() > 0;
  if (family.unknown_comparator.empty() && !(stamped && family.wanted)) {
    return Status::OK();
  }
  const std::string what =
      "column family '" + family.name + "': " +
      (stamped ? "its keys carry user-defined timestamps (comparator " +
                     std::string(family.source.comparator->Name()) +
                     "), which are refused"
               : "its comparator is " + family.unknown_comparator +
                     ", which this process does not have");
  // Without its default family, RocksDB cannot open a database.
  if (family.wanted || family.name == rocksdb::kDefaultColumnFamilyName) {
    return OnlyAsFiles(EndState::kRefused, what);
  }
  plan->read_only = true;
  plan->read_only_reason = what;
  return Status::OK();
}

// Checks that an iterator returns the entries of the family's tables in key
// order.
Status CheckTables(const FamilyOpening& family) {
  const rocksdb::TableFactory& tables = *family.source.table_factory;
  return !family.wanted || tables.IsInstanceOf("BlockBasedTable") ||
                 tables.IsInstanceOf("PlainTable")
             ? Status::OK()
             : OnlyAsFiles(EndState::kRefused,
                              "column family '" + family.name +
                                  "': expected block-based or plain tables, "
                                  "found " + tables.Name());
}

Status MarkWanted(const std::vector<std::string>& wanted, OpenPlan* plan) {
  std::set<std::string> missing(wanted.begin(), wanted.end());
  for (FamilyOpening& family : plan->families) {
    family.wanted = wanted.empty() || missing.erase(family.name) == 1;
  }
  return missing.empty()
             ? Status::OK()
             : MakeStatus(EndState::kRefused,
                          "column family '" + *missing.begin() +
                              "' is not in the source database");
}

}  // namespace

Status PlanOpening(const ManifestState& state,
                   const std::string& options_text,
                   const std::string& options_name,
                   const std::vector<std::string>& wanted,
                   const OperatorRegistry& registry, const OpenLimits& limits,
                   OpenPlan* plan) {
  *plan = OpenPlan();
  std::shared_ptr<rocksdb::Cache> cache =
      rocksdb::NewLRUCache(kSharedCacheBytes);
  std::vector<ColumnFamilyDescriptor> loaded;
  const Status status =
      options_text.empty()
          ? Status::OK()
          : LoadOptionsText(options_text, &plan->db, &loaded, &cache);
  if (!status.ok()) {
    return OnlyAsFiles(
        EndState::kRefused,
        options_name + ": expected OPTIONS that RocksDB can read, found " +
            MessageOf(status) +
            "; the application rewrites them when it opens the database");
  }
  plan->atomic_flush = plan->db.atomic_flush;
  plan->paranoid_checks = plan->db.paranoid_checks;
  ClearDatabaseOptions(&plan->db);
  plan->db.max_open_files = limits.max_open_files;
  const OptionsText text(options_text);
  bool mapped = false;
  for (const auto& [id, manifest] : state.families) {
    FamilyOpening family;
    family.name = manifest.name;
    for (const ColumnFamilyDescriptor& known : loaded) {
      if (known.name == family.name) {
        family.source = known.options;
      }
    }
    if (!options_text.empty() && !text.HasFamily(family.name)) {
      plan->notes.push_back("column family '" + family.name +
                            "': OPTIONS do not describe it (it is new, or the "
                            "application crashed before writing them), so it "
                            "gets default options");
    }
    ResolveObjects(text, manifest, registry, &family);
    family.open = family.source;
    mapped |= !family.source.table_factory->IsInstanceOf("BlockBasedTable");
    ClearFamilyOptions(cache, &family.open);
    plan->families.push_back(std::move(family));
  }
  // RocksDB reads plain and cuckoo tables only through mmap.
  plan->db.allow_mmap_reads = mapped;
  RETURN_IF_ERROR(MarkWanted(wanted, plan));
  for (FamilyOpening& family : plan->families) {
    if (!family.wanted && !family.unknown_merge_operator.empty()) {
      family.open.merge_operator = std::make_shared<DiscardingMerge>();
    }
  }
  for (const FamilyOpening& family : plan->families) {
    RETURN_IF_ERROR(CheckFamily(family, plan));
    RETURN_IF_ERROR(CheckTables(family));
  }
  return Status::OK();
}

void BoundWriteBuffers(uint64_t wal_bytes, const OpenLimits& limits,
                       OpenPlan* plan) {
  uint64_t each = limits.write_buffer_bytes;
  if (wal_bytes > each) {
    each = std::max(each / std::max<size_t>(plan->families.size(), 1),
                    kMinWriteBufferBytes);
  }
  for (FamilyOpening& family : plan->families) {
    family.open.write_buffer_size = each;
  }
}

}  // namespace sstferry
