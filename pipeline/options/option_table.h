// The list of options and values that must not come from a peer (see
// option_rules.h). With these values, RocksDB aborts the process, refuses to
// open the database, or uses unlimited memory. RocksDB's own parser checks all
// other options. Only option_rules.cc includes this file.
#pragma once

#include <cstdint>
#include <iterator>
#include <limits>

#include "pipeline/options/option_rules.h"

namespace sstferry::option_table {

inline constexpr uint64_t kAny = std::numeric_limits<uint64_t>::max();
inline constexpr uint64_t kAnyInt = std::numeric_limits<int32_t>::max();
inline constexpr uint64_t kAnyUint = std::numeric_limits<uint32_t>::max();
inline constexpr int64_t kMinInt = std::numeric_limits<int32_t>::min();
inline constexpr uint64_t kMiB = 1u << 20;
inline constexpr uint64_t kGiB = 1u << 30;

constexpr OptionRule Integer(const char* name, int64_t low, uint64_t high) {
  return {name, OptionKind::kInteger, low, high};
}
constexpr OptionRule Real(const char* name, int64_t low, uint64_t high) {
  return {name, OptionKind::kReal, low, high};
}
constexpr OptionRule VitalName(const char* name) {
  return {name, OptionKind::kVitalName};
}
constexpr OptionRule Compression(const char* name) {
  return {name, OptionKind::kCompression};
}
constexpr OptionRule Object(const char* name, const char* const* ids,
                            int64_t low, uint64_t high) {
  return {name, OptionKind::kObject, low, high, ids};
}
constexpr OptionRule Dropped(const char* name, const char* reason) {
  return {name, OptionKind::kDropped, 0, 0, nullptr, reason};
}

inline constexpr const char* kHostPath = "a path of the source's host";
inline constexpr const char* kObjectOfApplication =
    "an object of the application, which sets it again when it opens the "
    "database";

// --- objects that RocksDB itself can make ------------------------------------
inline constexpr const char* kPrefixIds[] = {
    "rocksdb.FixedPrefix", "rocksdb.CappedPrefix", "rocksdb.Noop", "fixed",
    "capped", nullptr};
inline constexpr const char* kMemtableIds[] = {
    "SkipListFactory",
    "skip_list",
    "HashSkipListRepFactory",
    "prefix_hash",
    "HashLinkListRepFactory",
    "hash_linkedlist",
    "VectorRepFactory",
    "vector",
    nullptr};
inline constexpr const char* kFilterIds[] = {
    "bloomfilter",
    "ribbonfilter",
    "rocksdb.BuiltinBloomFilter",
    "rocksdb.BloomFilter",
    "rocksdb.RibbonFilter",
    "rocksdb.internal.LegacyBloomFilter",
    "rocksdb.internal.FastLocalBloomFilter",
    "rocksdb.internal.Standard128RibbonFilter",
    nullptr};
inline constexpr const char* kPartitionerIds[] = {
    "SstPartitionerFixedPrefixFactory", nullptr};
inline constexpr const char* kFlushBlockIds[] = {
    "FlushBlockBySizePolicyFactory", "FlushBlockEveryKeyPolicyFactory",
    nullptr};
// --- ColumnFamilyOptions -----------------------------------------------------
inline constexpr OptionRule kFamilyRules[] = {
    // Levels and compactions.
    VitalName("compaction_style"),
    Integer("num_levels", 1, 64),
    Integer("target_file_size_base", 1, kAny),
    Integer("target_file_size_multiplier", 1, 1000000),
    Integer("max_bytes_for_level_base", 1, kAny),
    Real("max_bytes_for_level_multiplier", 1, 1000000),
    Object("sst_partitioner_factory", kPartitionerIds, 0, 64 << 10),
    // Compression and blobs.
    Compression("compression"),
    Compression("bottommost_compression"),
    {"compression_per_level", OptionKind::kCompressions},
    Compression("blob_compression_type"),
    Real("blob_garbage_collection_age_cutoff", 0, 1),
    Real("blob_garbage_collection_force_threshold", 0, 1),
    Integer("blob_file_starting_level", 0, 64),
    // Memtables.
    Integer("write_buffer_size", 0, 64 * kGiB),
    Integer("max_write_buffer_number", 1, 4096),
    Integer("min_write_buffer_number_to_merge", 0, 4096),
    Integer("arena_block_size", 0, kGiB),
    Integer("memtable_huge_page_size", 0, kGiB),
    Real("memtable_prefix_bloom_size_ratio", 0, 1),
    Integer("memtable_protection_bytes_per_key", 0, 8),
    // 2 Mi buckets take 16 MiB. FamilyBuilder::BoundMemtables() relies on this.
    Object("memtable_factory", kMemtableIds, -1, 2 * kMiB),
    Object("memtable_insert_with_hint_prefix_extractor", kPrefixIds, 0,
           64 << 10),
    Integer("inplace_update_num_locks", 1, 1000000),
    // Reading and checks.
    Object("prefix_extractor", kPrefixIds, 0, 64 << 10),
    Integer("block_protection_bytes_per_key", 0, 8),
    // Never accepted.
    Dropped("compaction_filter", kObjectOfApplication),
    Dropped("compaction_filter_factory", kObjectOfApplication),
    Dropped("compaction_thread_limiter", kObjectOfApplication),
    Dropped("table_properties_collectors", kObjectOfApplication),
    Dropped("blob_cache", kObjectOfApplication),
    Dropped("blob_direct_write_partition_strategy", kObjectOfApplication),
    Dropped("compression_manager", kObjectOfApplication),
    Dropped("cf_paths", kHostPath),
    // The peer sends the comparator, merge operator and table factory in other
    // fields.
    Dropped("comparator", nullptr),
    Dropped("merge_operator", nullptr),
    Dropped("table_factory", nullptr),
    Dropped("block_based_table_factory", nullptr),
    Dropped("plain_table_factory", nullptr),
};

// --- BlockBasedTableOptions --------------------------------------------------
inline constexpr OptionRule kTableRules[] = {
    Integer("format_version", 0, 1000),
    VitalName("checksum"),
    Integer("block_size", 1, 256 * kMiB),
    Integer("block_restart_interval", -1, 1000000),
    Integer("index_block_restart_interval", -1, 1000000),
    Integer("metadata_block_size", 1, 256 * kMiB),
    Real("data_block_hash_table_util_ratio", 0, 1000),
    Object("filter_policy", kFilterIds, kMinInt, kAnyInt),
    Integer("super_block_alignment_size", 0, kAnyUint),
    // Instead of 0, RocksDB 6.8 wrote 8589934592. The limit drops this value.
    Integer("read_amp_bytes_per_bit", 0, kGiB),
    Integer("max_auto_readahead_size", 0, kGiB),
    Integer("initial_auto_readahead_size", 0, kGiB),
    Object("flush_block_policy_factory", kFlushBlockIds, 0, 0),
    Dropped("block_cache", kObjectOfApplication),
    Dropped("block_cache_compressed", kObjectOfApplication),
    Dropped("persistent_cache", kObjectOfApplication),
    Dropped("cache_usage_options", kObjectOfApplication),
    Dropped("user_defined_index_factory", kObjectOfApplication),
    // If the source has set one of these, no chunks are built (see
    // transfer_planner.cc).
    Dropped("use_udi_as_primary_index", nullptr),
    Dropped("fail_if_no_udi_on_open", nullptr),
};

}  // namespace sstferry::option_table
