// The table behind option_rules.h, one line per option. Only option_rules.cc
// includes it.
#pragma once

#include <cstdint>
#include <iterator>
#include <limits>

#include "pipeline/options/option_rules.h"

namespace sstferry::option_table {

inline constexpr uint64_t kAny = std::numeric_limits<uint64_t>::max();
inline constexpr uint64_t kAnyInt = std::numeric_limits<int32_t>::max();
inline constexpr uint64_t kAnyUint = std::numeric_limits<uint32_t>::max();
inline constexpr uint64_t kAnySigned = std::numeric_limits<int64_t>::max();
inline constexpr int64_t kMinInt = std::numeric_limits<int32_t>::min();
inline constexpr uint64_t kMiB = 1u << 20;
inline constexpr uint64_t kGiB = 1u << 30;

constexpr OptionRule Bool(const char* name) {
  return {name, OptionKind::kBool};
}
constexpr OptionRule Integer(const char* name, int64_t low, uint64_t high) {
  return {name, OptionKind::kInteger, low, high};
}
constexpr OptionRule Real(const char* name, int64_t low, uint64_t high) {
  return {name, OptionKind::kReal, low, high};
}
constexpr OptionRule Integers(const char* name, int64_t low, uint64_t high) {
  return {name, OptionKind::kIntegers, low, high};
}
constexpr OptionRule Name(const char* name) {
  return {name, OptionKind::kName};
}
constexpr OptionRule VitalName(const char* name) {
  return {name, OptionKind::kVitalName};
}
constexpr OptionRule Compression(const char* name) {
  return {name, OptionKind::kCompression};
}
template <size_t N>
constexpr OptionRule Struct(const char* name, const OptionRule (&members)[N]) {
  return {name, OptionKind::kStruct, 0, 0, members, N};
}
constexpr OptionRule Object(const char* name, const char* const* ids,
                            int64_t low, uint64_t high) {
  return {name, OptionKind::kObject, low, high, nullptr, 0, ids};
}
constexpr OptionRule Dropped(const char* name, const char* reason) {
  return {name, OptionKind::kDropped, 0, 0, nullptr, 0, nullptr, reason};
}

inline constexpr const char* kHostPath = "a path of the source's host";
inline constexpr const char* kObjectOfApplication =
    "an object of the application, which sets it again when it opens";

// --- members of structs ------------------------------------------------------
inline constexpr OptionRule kCompressionMembers[] = {
    Integer("window_bits", -64, 64),
    Integer("level", kMinInt, kAnyInt),
    Integer("strategy", kMinInt, kAnyInt),
    Integer("max_dict_bytes", 0, 64 * kMiB),
    Integer("zstd_max_train_bytes", 0, kGiB),
    Integer("parallel_threads", 0, 256),
    Bool("enabled"),
    Integer("max_dict_buffer_bytes", 0, kAny),
    Bool("use_zstd_dict_trainer"),
    Integer("max_compressed_bytes_per_kb", 0, kAnyInt),
    Bool("checksum"),
};
inline constexpr OptionRule kFifoMembers[] = {
    Integer("max_table_files_size", 0, kAny),
    Integer("age_for_warm", 0, kAny),
    Integer("ttl", 0, kAny),
    Bool("allow_compaction"),
    Dropped("file_temperature_age_thresholds",
            "storage tiers belong to the source's host"),
    Bool("allow_trivial_copy_when_change_temperature"),
    Integer("trivial_copy_buffer_size", 0, kGiB),
    Integer("max_data_files_size", 0, kAny),
    Bool("use_kv_ratio_compaction"),
};
inline constexpr OptionRule kUniversalMembers[] = {
    Integer("size_ratio", 0, kAnyUint),
    Integer("min_merge_width", 0, kAnyUint),
    Integer("max_merge_width", 0, kAnyUint),
    Integer("max_size_amplification_percent", 0, kAnyUint),
    Integer("compression_size_percent", -1, 100),
    Integer("max_read_amp", -1, kAnyInt),
    Name("stop_style"),
    Bool("incremental"),
    Bool("allow_trivial_move"),
    Bool("reduce_file_locking"),
};
inline constexpr OptionRule kMetadataCacheMembers[] = {
    Name("top_level_index_pinning"),
    Name("partition_pinning"),
    Name("unpartitioned_pinning"),
};

// --- objects that RocksDB itself can make
// --------------------------------------
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
inline constexpr const char* kChecksumFactoryIds[] = {
    "FileChecksumGenCrc32cFactory", nullptr};

// --- ColumnFamilyOptions -----------------------------------------------------
inline constexpr OptionRule kFamilyRules[] = {
    // Levels and compactions.
    VitalName("compaction_style"),
    Integer("num_levels", 1, 64),
    Name("compaction_pri"),
    Struct("compaction_options_universal", kUniversalMembers),
    Struct("compaction_options_fifo", kFifoMembers),
    Bool("level_compaction_dynamic_level_bytes"),
    Bool("level_compaction_dynamic_file_size"),
    Integer("target_file_size_base", 1, kAny),
    Integer("target_file_size_multiplier", 1, 1000000),
    Bool("target_file_size_is_upper_bound"),
    Integer("max_bytes_for_level_base", 1, kAny),
    Real("max_bytes_for_level_multiplier", 1, 1000000),
    Integers("max_bytes_for_level_multiplier_additional", 0, 1000000),
    Integer("max_compaction_bytes", 0, kAny),
    Bool("ignore_max_compaction_bytes_for_input"),
    Integer("level0_file_num_compaction_trigger", -1, kAnyInt),
    Integer("level0_slowdown_writes_trigger", -1, kAnyInt),
    Integer("level0_stop_writes_trigger", -1, kAnyInt),
    Integer("soft_pending_compaction_bytes_limit", 0, kAny),
    Integer("hard_pending_compaction_bytes_limit", 0, kAny),
    Bool("disable_auto_compactions"),
    Integer("ttl", 0, kAny),
    Integer("periodic_compaction_seconds", 0, kAny),
    Integer("bottommost_file_compaction_delay", 0, kAnyUint),
    Real("read_triggered_compaction_threshold", 0, 1000000),
    Bool("cf_allow_ingest_behind"),
    Integer("preserve_internal_time_seconds", 0, kAny),
    Integer("preclude_last_level_data_seconds", 0, kAny),
    Name("last_level_temperature"),
    Name("default_temperature"),
    Name("default_write_temperature"),
    Object("sst_partitioner_factory", kPartitionerIds, 0, 64 << 10),
    // Compression and blobs.
    Compression("compression"),
    Compression("bottommost_compression"),
    {"compression_per_level", OptionKind::kCompressions},
    Struct("compression_opts", kCompressionMembers),
    Struct("bottommost_compression_opts", kCompressionMembers),
    Integer("sample_for_compression", 0, kAny),
    Bool("enable_blob_files"),
    Integer("min_blob_size", 0, kAny),
    Integer("blob_file_size", 1, kAny),
    Compression("blob_compression_type"),
    Struct("blob_compression_opts", kCompressionMembers),
    Bool("enable_blob_direct_write"),
    Integer("blob_direct_write_partitions", 0, kAnyUint),
    Bool("enable_blob_garbage_collection"),
    Real("blob_garbage_collection_age_cutoff", 0, 1),
    Real("blob_garbage_collection_force_threshold", 0, 1),
    Integer("blob_compaction_readahead_size", 0, kGiB),
    Integer("blob_file_starting_level", 0, 64),
    Name("prepopulate_blob_cache"),
    // Memtables.
    Integer("write_buffer_size", 0, 64 * kGiB),
    Integer("max_write_buffer_number", 1, 4096),
    Integer("min_write_buffer_number_to_merge", 0, 4096),
    Integer("max_write_buffer_number_to_maintain", -1, 4096),
    Integer("max_write_buffer_size_to_maintain", -1, kAnySigned),
    Integer("arena_block_size", 0, kGiB),
    Integer("memtable_huge_page_size", 0, kGiB),
    Real("memtable_prefix_bloom_size_ratio", 0, 1),
    Bool("memtable_whole_key_filtering"),
    Integer("memtable_protection_bytes_per_key", 0, 8),
    Integer("memtable_max_range_deletions", 0, kAnyUint),
    Integer("memtable_op_scan_flush_trigger", 0, kAnyUint),
    Integer("memtable_avg_op_scan_flush_trigger", 0, kAnyUint),
    Integer("min_tombstones_for_range_conversion", 0, kAnyUint),
    Bool("memtable_batch_lookup_optimization"),
    // Name misspelled by RocksDB 10.4 to 11.7.
    Bool("memtable_veirfy_per_key_checksum_on_seek"),
    Bool("memtable_verify_per_key_checksum_on_seek"),
    Bool("disallow_memtable_writes"),
    Integer("bloom_locality", 0, kAnyUint),
    // 2 Mi buckets take 16 MiB (FamilyBuilder::BoundMemtables).
    Object("memtable_factory", kMemtableIds, -1, 2 * kMiB),
    Object("memtable_insert_with_hint_prefix_extractor", kPrefixIds, 0,
           64 << 10),
    Bool("inplace_update_support"),
    Integer("inplace_update_num_locks", 1, 1000000),
    Integer("max_successive_merges", 0, kAny),
    Bool("strict_max_successive_merges"),
    Real("experimental_mempurge_threshold", 0, 100),
    Bool("persist_user_defined_timestamps"),
    // Reading, checks, the rest.
    Object("prefix_extractor", kPrefixIds, 0, 64 << 10),
    Integer("max_sequential_skip_in_iterations", 0, kAny),
    Bool("optimize_filters_for_hits"),
    Bool("force_consistency_checks"),
    Bool("check_flush_compaction_key_order"),
    Bool("paranoid_file_checks"),
    Bool("paranoid_memory_checks"),
    Integer("verify_output_flags", 0, kAnyUint),
    Bool("report_bg_io_stats"),
    Integer("block_protection_bytes_per_key", 0, 8),
    Integer("uncache_aggressiveness", 0, kAnyUint),
    // Never accepted.
    Dropped("compaction_filter", kObjectOfApplication),
    Dropped("compaction_filter_factory", kObjectOfApplication),
    Dropped("compaction_thread_limiter", kObjectOfApplication),
    Dropped("table_properties_collectors", kObjectOfApplication),
    Dropped("blob_cache", kObjectOfApplication),
    Dropped("blob_direct_write_partition_strategy", kObjectOfApplication),
    Dropped("compression_manager", kObjectOfApplication),
    Dropped("cf_paths", kHostPath),
    // Sent separately: comparator, merge operator and table factory.
    Dropped("comparator", nullptr),
    Dropped("merge_operator", nullptr),
    Dropped("table_factory", nullptr),
    Dropped("block_based_table_factory", nullptr),
    Dropped("plain_table_factory", nullptr),
};

// --- BlockBasedTableOptions
// ----------------------------------------------------
inline constexpr OptionRule kTableRules[] = {
    Integer("format_version", 0, 1000),
    VitalName("checksum"),
    Integer("block_size", 1, 256 * kMiB),
    Integer("block_size_deviation", -1, 1000),
    Integer("block_restart_interval", -1, 1000000),
    Integer("index_block_restart_interval", -1, 1000000),
    Integer("metadata_block_size", 1, 256 * kMiB),
    Name("index_type"),
    Name("index_shortening"),
    Name("index_block_search_type"),
    Real("uniform_cv_threshold", -1000000, 1000000),
    Name("data_block_index_type"),
    Bool("separate_key_value_in_data_block"),
    Real("data_block_hash_table_util_ratio", 0, 1000),
    Bool("partition_filters"),
    Bool("decouple_partitioned_filters"),
    Object("filter_policy", kFilterIds, kMinInt, kAnyInt),
    Bool("whole_key_filtering"),
    Bool("optimize_filters_for_memory"),
    Bool("detect_filter_construct_corruption"),
    Bool("use_delta_encoding"),
    Bool("enable_index_compression"),
    Bool("verify_compression"),
    Bool("block_align"),
    Integer("super_block_alignment_size", 0, kAnyUint),
    Integer("super_block_alignment_space_overhead_ratio", 0, kAny),
    Integer("read_amp_bytes_per_bit", 0, kGiB),
    Bool("no_block_cache"),
    Bool("cache_index_and_filter_blocks"),
    Bool("cache_index_and_filter_blocks_with_high_priority"),
    Bool("pin_l0_filter_and_index_blocks_in_cache"),
    Bool("pin_top_level_index_and_filter"),
    Struct("metadata_cache_options", kMetadataCacheMembers),
    Name("prepopulate_block_cache"),
    Integer("max_auto_readahead_size", 0, kGiB),
    Integer("initial_auto_readahead_size", 0, kGiB),
    Integer("num_file_reads_for_auto_readahead", 0, kAny),
    Object("flush_block_policy_factory", kFlushBlockIds, 0, 0),
    Dropped("block_cache", kObjectOfApplication),
    Dropped("block_cache_compressed", kObjectOfApplication),
    Dropped("persistent_cache", kObjectOfApplication),
    Dropped("cache_usage_options", kObjectOfApplication),
    Dropped("user_defined_index_factory", kObjectOfApplication),
    Dropped("use_udi_as_primary_index", kObjectOfApplication),
    Dropped("fail_if_no_udi_on_open", kObjectOfApplication),
    // Deprecated names that RocksDB itself no longer reads.
    Dropped("hash_index_allow_collision", nullptr),
    Dropped("index_per_partition", nullptr),
    Dropped("skip_table_builder_flush", nullptr),
    Dropped("reserve_table_builder_memory", nullptr),
    Dropped("reserve_table_reader_memory", nullptr),
};

// --- DBOptions
// -----------------------------------------------------------------
inline constexpr OptionRule kDatabaseRules[] = {
    // Threads, files, buffers.
    Integer("max_background_jobs", -1, 1024),
    Integer("max_background_compactions", -1, 1024),
    Integer("max_background_flushes", -1, 1024),
    Integer("base_background_compactions", -1, 1024),
    Integer("max_subcompactions", 0, 1024),
    Integer("max_open_files", -1, kAnyInt),
    Integer("max_file_opening_threads", 1, 1024),
    Integer("read_io_executor_threads", 0, 1024),
    Bool("open_files_async"),
    Bool("fast_sst_open"),
    Integer("table_cache_numshardbits", -1, 19),
    Integer("db_write_buffer_size", 0, kAny),
    Integer("writable_file_max_buffer_size", 0, kGiB),
    Integer("random_access_max_buffer_size", 0, kGiB),
    Integer("compaction_readahead_size", 0, kGiB),
    Integer("log_readahead_size", 0, kGiB),
    Integer("bytes_per_sync", 0, kAny),
    Integer("wal_bytes_per_sync", 0, kAny),
    Bool("strict_bytes_per_sync"),
    Integer("delayed_write_rate", 0, kAny),
    Bool("use_direct_reads"),
    Bool("use_direct_io_for_flush_and_compaction"),
    Bool("use_direct_io_for_compaction_reads"),
    Bool("allow_mmap_reads"),
    Bool("allow_mmap_writes"),
    Bool("allow_fallocate"),
    Bool("use_fsync"),
    Bool("use_adaptive_mutex"),
    Bool("advise_random_on_open"),
    Name("access_hint_on_compaction_start"),
    Bool("is_fd_close_on_exec"),
    // WAL and MANIFEST.
    Integer("max_total_wal_size", 0, kAny),
    Integer("WAL_ttl_seconds", 0, kAny),
    Integer("WAL_size_limit_MB", 0, kAny),
    Name("wal_recovery_mode"),
    Compression("wal_compression"),
    Bool("manual_wal_flush"),
    Integer("recycle_log_file_num", 0, 4096),
    Bool("track_and_verify_wals_in_manifest"),
    Bool("track_and_verify_wals"),
    Bool("async_wal_precreate"),
    Bool("background_close_inactive_wals"),
    Integer("max_manifest_file_size", 0, kAny),
    Integer("max_manifest_space_amp_pct", 0, kAnyInt),
    Bool("reuse_manifest_on_open"),
    Bool("optimize_manifest_for_recovery"),
    Bool("verify_manifest_content_on_close"),
    Integer("manifest_preallocation_size", 0, kGiB),
    Bool("write_dbid_to_manifest"),
    Bool("write_identity_file"),
    Bool("verify_sst_unique_id_in_manifest"),
    Name("metadata_write_temperature"),
    Name("wal_write_temperature"),
    // Writing.
    Bool("allow_concurrent_memtable_write"),
    Bool("enable_write_thread_adaptive_yield"),
    Integer("write_thread_max_yield_usec", 0, 1000000),
    Integer("write_thread_slow_yield_usec", 0, 1000000),
    Integer("max_write_batch_group_size_bytes", 0, kAny),
    Bool("enable_pipelined_write"),
    Bool("two_write_queues"),
    Bool("unordered_write"),
    Bool("atomic_flush"),
    Bool("allow_2pc"),
    Bool("allow_ingest_behind"),
    Bool("avoid_flush_during_recovery"),
    Bool("avoid_flush_during_shutdown"),
    Bool("avoid_unnecessary_blocking_io"),
    Bool("flush_verify_memtable_count"),
    Bool("compaction_verify_record_count"),
    Bool("enforce_single_del_contracts"),
    Bool("enforce_write_buffer_manager_during_recovery"),
    Integer("max_compaction_trigger_wakeup_seconds", 0, kAny),
    // Opening and errors.
    Bool("create_if_missing"),
    Bool("create_missing_column_families"),
    Bool("paranoid_checks"),
    Bool("fail_if_options_file_error"),
    Bool("skip_stats_update_on_db_open"),
    Bool("skip_checking_sst_file_sizes_on_db_open"),
    Bool("best_efforts_recovery"),
    Integer("max_bgerror_resume_count", 0, kAnyInt),
    Integer("bgerror_resume_retry_interval", 0, kAny),
    Bool("allow_data_in_errors"),
    Bool("prefix_seek_opt_in_only"),
    // Logs and statistics.
    Name("info_log_level"),
    Integer("max_log_file_size", 0, kAny),
    Integer("log_file_time_to_roll", 0, kAny),
    Integer("keep_log_file_num", 1, kAny),
    Integer("delete_obsolete_files_period_micros", 0, kAny),
    Integer("stats_dump_period_sec", 0, kAnyUint),
    Integer("stats_persist_period_sec", 0, kAnyUint),
    Integer("stats_history_buffer_size", 0, kGiB),
    Bool("persist_stats_to_disk"),
    Bool("dump_malloc_stats"),
    Bool("enable_thread_tracking"),
    Name("lowest_used_cache_tier"),
    Object("file_checksum_gen_factory", kChecksumFactoryIds, 0, 0),
    // Never accepted.
    Dropped("wal_dir", kHostPath),
    Dropped("db_log_dir", kHostPath),
    Dropped("db_paths", kHostPath),
    Dropped("db_host_id", "a name of the source's host"),
    Dropped("daily_offpeak_time_utc", "a time of day of the source's host"),
    Dropped("error_if_exists", "the database would refuse to open"),
    Dropped("env", kObjectOfApplication),
    Dropped("file_system", kObjectOfApplication),
    Dropped("rate_limiter", kObjectOfApplication),
    Dropped("sst_file_manager", kObjectOfApplication),
    Dropped("info_log", kObjectOfApplication),
    Dropped("statistics", kObjectOfApplication),
    Dropped("listeners", kObjectOfApplication),
    Dropped("row_cache", kObjectOfApplication),
    Dropped("write_buffer_manager", kObjectOfApplication),
    Dropped("wal_filter", kObjectOfApplication),
    Dropped("compaction_service", kObjectOfApplication),
    // Used only by followers.
    Dropped("follower_catchup_retry_count", nullptr),
    Dropped("follower_catchup_retry_wait_ms", nullptr),
    Dropped("follower_refresh_catchup_period_ms", nullptr),
};

}  // namespace sstferry::option_table
