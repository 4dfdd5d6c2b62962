// The table for known.h. Only known.cc includes this file.
//
// The effect In(FILE) means that FILE handles the name. To add a name of a new
// release, add it to the list of its kind, in a row with this release and with
// the name's effects.
#pragma once

#include <span>

#include "format/rocksdb/known.h"

namespace sstferry::known_table {

// --- which file handles a name, or why it is refused -------------------------
constexpr Effect In(const char* file) { return {Handling::kHandled, file}; }
constexpr Effect Refused(const char* why) { return {Handling::kRefused, why}; }

inline constexpr Effect kNothing{};
inline constexpr Effect kFiles = In("pipeline/snapshot/snapshot_files.cc");
inline constexpr Effect kWals = In("pipeline/snapshot/snapshot_wals.cc");
inline constexpr Effect kWalDir = In("pipeline/snapshot/snapshot_wal_place.cc");
inline constexpr Effect kManifest =
    In("pipeline/snapshot/snapshot_manifest.cc");
inline constexpr Effect kLinks = In("pipeline/snapshot/snapshot_tables.cc");
inline constexpr Effect kClone = In("pipeline/snapshot/file_snapshot.cc");
inline constexpr Effect kSeen = In("pipeline/options/seen_options.cc");
inline constexpr Effect kReplay = In("pipeline/snapshot/snapshot_replay.cc");
inline constexpr Effect kCopy = In("pipeline/snapshot/snapshot_options.cc");
inline constexpr Effect kCompat = In("pipeline/base/rocksdb_compat.h");
inline constexpr Effect kFamily = In("pipeline/options/family_options.cc");
inline constexpr Effect kOperators = In("pipeline/options/operators.cc");
inline constexpr Effect kReplica = In("pipeline/options/replica_options.cc");
inline constexpr Effect kFollowed = In("pipeline/follow/followed_source.cc");
inline constexpr Effect kLogReader = In("format/rocksdb/log_follower.cc");
inline constexpr Effect kWalEnd = In("format/rocksdb/wal_end.cc");
inline constexpr Effect kBatches = In("format/rocksdb/write_batch_reader.cc");
inline constexpr Effect kEdits = In("format/rocksdb/version_edit.cc");
inline constexpr Effect kJudge = In("format/rocksdb/edit_judge.cc");
inline constexpr Effect kTableCheck = In("format/rocksdb/sst_file_check.cc");

// Returns effects on a clone, on chunks, and on `follow` and `log`, which read
// the records between two cuts.
constexpr Effects With(Effect clone, Effect chunks, Effect following) {
  return {clone, chunks, following, following};
}
constexpr Effects Everywhere(Effect effect) {
  return With(effect, effect, effect);
}
constexpr Effects Chunks(Effect chunks) {
  return With(kNothing, chunks, kNothing);
}

// --- effects -----------------------------------------------------------------
inline constexpr Effects kNoEffect{};

// Names and locations of files.
inline constexpr Effects kWalPlace = With(kWalDir, kWalDir, kFollowed);
inline constexpr Effects kLogPlace = With(kReplica, kReplica, kNothing);
inline constexpr Effects kOtherPaths =
    With(Refused("a clone has one directory"),
         Refused("tables outside of the database's directory"), kNothing);
// The application's own file system, for example one that encrypts.
inline constexpr Effects kForeignFiles =
    Everywhere(Refused("files that only the application's file system can "
                       "read look damaged"));
inline constexpr Effects kIdentity =
    With(kManifest, In("pipeline/pull/seed_target.cc"), kFollowed);
inline constexpr Effects kNewManifest = Everywhere(kManifest);
inline constexpr Effects kReusedManifest =
    With(kWalDir, kCompat, In("pipeline/follow/standby.cc"));
inline constexpr Effects kMoreInManifest = Everywhere(kEdits);
inline constexpr Effects kWalFiles = With(kWals, kWals, kFollowed);
inline constexpr Effects kDataFiles = With(kLinks, kLinks, kNothing);
inline constexpr Effects kOptionsFiles = With(kSeen, kSeen, kFollowed);
inline constexpr Effects kLockFiles = With(kNothing, kNothing, kFollowed);

// Contents of WALs, and how recovery reads them.
inline constexpr Effects kTwoPhase =
    With(In("format/rocksdb/manifest_state.cc"), kReplay, kWalEnd);
inline constexpr Effects kBuffered = With(kFiles, kFiles, kWalEnd);
inline constexpr Effects kRecycled = With(kWals, kWals, kFollowed);
inline constexpr Effects kRecovery = With(kFiles, kReplay, kNothing);
inline constexpr Effects kTracked = With(kClone, kCopy, kNothing);
inline constexpr Effects kPredecessors =
    With(kLogReader, kCompat, kLogReader);
inline constexpr Effects kCompressedWals =
    With(kLogReader, kReplay, kLogReader);
inline constexpr Effects kEmptyWals = With(kWalEnd, kCompat, kWalEnd);
inline constexpr Effects kQueues =
    With(kNothing, kCopy, In("format/rocksdb/wal_continuity.cc"));
inline constexpr Effects kDoubt = Chunks(kReplay);
inline constexpr Effects kAtomic = Chunks(kCopy);
inline constexpr Effects kWalFilter =
    Chunks(Refused("where WALs have entries: only its application filters them"));
inline constexpr Effects kInplaceCallback =
    Chunks(Refused("where WALs have entries, as inplace_update_support"));

// sstferry opens two databases with other option values than the source's: its
// private copy of the source, and the database into which it ingests chunks.
// The replica's OPTIONS still have the source's values.
inline constexpr Effects kCopySets = Chunks(kCopy);
inline constexpr Effects kCopyQuiets = Chunks(kCompat);
inline constexpr Effects kFamilySets = Chunks(kFamily);
inline constexpr Effects kFamilyQuiets = Chunks(kCompat);

// Keys, values, and their order and age.
inline constexpr Effects kOrder =
    With(In("format/rocksdb/file_identity.cc"), kOperators, kJudge);
inline constexpr Effects kMerges = Chunks(kOperators);
inline constexpr Effects kPrefixes = Chunks(kOperators);
inline constexpr Effects kFilters = {kNothing, kCopy, kFollowed,
                                     In("pipeline/api/log_rounds.cc")};
inline constexpr Effects kTimestamps =
    With(kEdits, Refused("user-defined timestamps"), kJudge);
inline constexpr Effects kBlobs = With(kClone, kFamily, kFollowed);
inline constexpr Effects kBlobsInWals =
    Everywhere(Refused("values in blob files that no MANIFEST names yet"));
inline constexpr Effects kInplace = Chunks(kCopy);
// Entries in chunks lose their ages, which start again at zero. A note tells
// the operator if this matters.
inline constexpr Effects kAges = With(kNothing, kFamily, kJudge);
inline constexpr Effects kStyle = With(kNothing, kFamily, kJudge);
inline constexpr Effects kLevels =
    Chunks(In("pipeline/refresh/delta_compaction.cc"));
inline constexpr Effects kIngestBehind =
    Chunks(Refused("the application ingests older data, which deletions must "
                   "hide, but chunks have no deletions"));

// Tables.
inline constexpr Effects kTables = With(kClone, kCopy, kNothing);
inline constexpr Effects kFormat =
    With(In("format/release.cc"), kReplica, kNothing);
inline constexpr Effects kIndex = With(kTableCheck, kFamily, kNothing);
inline constexpr Effects kOwnIndex =
    Chunks(In("pipeline/serve/transfer_planner.cc"));
inline constexpr Effects kMarks =
    With(In("format/rocksdb/sst_block.cc"), kCompat, kNothing);
inline constexpr Effects kPadding = With(kTableCheck, kCompat, kNothing);
inline constexpr Effects kPolicy = Chunks(kFamily);
inline constexpr Effects kCaches = Chunks(kFamily);
inline constexpr Effects kPlainTables = Chunks(kFamily);
inline constexpr Effects kCuckooTables =
    Chunks(Refused("tables without an order to iterate in"));
inline constexpr Effects kCompression = Chunks(kFamily);
inline constexpr Effects kCompressors =
    With(In("format/rocksdb/sst_compression.cc"), kCompat, kNothing);
inline constexpr Effects kCollectors =
    Chunks(In("pipeline/options/option_rules.cc"));
inline constexpr Effects kFileChecksums =
    Chunks(In("pipeline/pull/seed_target.cc"));

// Records of WALs and of MANIFESTs.
inline constexpr Effects kLogRecord = Everywhere(kLogReader);
inline constexpr Effects kNeedsRelease =
    With(kLogReader, kReplay, kLogReader);
inline constexpr Effects kBatchEntry = Everywhere(kBatches);
inline constexpr Effects kBatchOfPolicy =
    With(kBatches, Refused("a batch takes one sequence number, not one per "
                           "entry"),
         Refused("a batch takes one sequence number, not one per entry"));
inline constexpr Effects kBlobEntry = With(kReplay, kReplay, kFollowed);
inline constexpr Effects kEntity = With(kBatches, kCompat, kBatches);
inline constexpr Effects kStampedEntry =
    Chunks(Refused("user-defined timestamps"));
inline constexpr Effects kEditTag = Everywhere(kEdits);
// RocksDB lets a reader ignore these tags. A follower that finds one takes a
// cut.
inline constexpr Effects kIgnoredTag = With(kEdits, kEdits, kJudge);
inline constexpr Effects kOfOneRelease =
    Everywhere(Refused("RocksDB 6.14 alone knew it"));

// --- names -------------------------------------------------------------------
// In each list, rows without an effect come before rows with an effect. Both
// are sorted by release. A name with a number is the name of an enumerator.
struct NameRow {
  RocksDbRelease since;
  RocksDbRelease until;
  const Effects& effects;
  const char* names;  // separated by blanks
};

inline constexpr RocksDbRelease kStays{};
// Value of `until` for options that RocksDB accepts in OPTIONS files but
// ignores. RocksDB's structs had no such members in the oldest known release,
// or never had them.
inline constexpr RocksDbRelease kGone = kOldestKnown;

// DBOptions. OPTIONS files contain env only if it is not the default.
inline constexpr NameRow kDatabaseOptions[] = {
    {{6, 8, 0}, kStays, kNoEffect,
     "advise_random_on_open allow_concurrent_memtable_write allow_fallocate "
     "avoid_unnecessary_blocking_io bytes_per_sync compaction_readahead_size "
     "delayed_write_rate delete_obsolete_files_period_micros "
     "dump_malloc_stats enable_thread_tracking "
     "enable_write_thread_adaptive_yield is_fd_close_on_exec "
     "keep_log_file_num log_file_time_to_roll manifest_preallocation_size "
     "max_background_compactions max_background_flushes "
     "max_file_opening_threads max_log_file_size "
     "max_write_batch_group_size_bytes rate_limiter_bytes_per_sec "
     "stats_history_buffer_size strict_bytes_per_sync use_adaptive_mutex "
     "use_fsync wal_bytes_per_sync writable_file_max_buffer_size "
     "write_thread_max_yield_usec write_thread_slow_yield_usec"},
    {{6, 8, 0}, kGone, kNoEffect,
     "allow_os_buffer concurrent_prepare disable_data_sync disableDataSync "
     "seq_per_batch use_direct_writes"},
    {{6, 8, 0}, {6, 9, 0}, kNoEffect,
     "file_system sst_file_checksum_func"},
    {{6, 8, 0}, {7, 0, 0}, kNoEffect,
     "base_background_compactions new_table_reader_for_compaction_inputs "
     "preserve_deletes skip_log_error_on_recovery"},
    {{6, 8, 0}, {9, 0, 0}, kNoEffect,
     "access_hint_on_compaction_start"},
    {{6, 8, 0}, {9, 11, 0}, kNoEffect,
     "random_access_max_buffer_size"},
    {{6, 8, 0}, {10, 2, 0}, kNoEffect,
     "fail_if_options_file_error"},
    {{6, 12, 0}, kStays, kNoEffect,
     "bgerror_resume_retry_interval max_bgerror_resume_count"},
    {{6, 14, 0}, kStays, kNoEffect,
     "allow_data_in_errors"},
    {{6, 15, 0}, kStays, kNoEffect,
     "db_host_id"},
    {{6, 18, 0}, kStays, kNoEffect,
     "checksum_handoff_file_types"},
    {{6, 21, 0}, kStays, kNoEffect,
     "flush_verify_memtable_count"},
    {{6, 23, 0}, {6, 24, 0}, kNoEffect,
     "experimental_allow_mempurge"},
    {{6, 24, 0}, {6, 24, 0}, kNoEffect,
     "experimental_mempurge_policy"},
    {{6, 24, 0}, {7, 5, 0}, kNoEffect,
     "experimental_mempurge_threshold"},
    {{6, 26, 0}, kStays, kNoEffect,
     "lowest_used_cache_tier"},
    {{7, 3, 0}, kStays, kNoEffect,
     "verify_sst_unique_id_in_manifest"},
    {{8, 6, 0}, kStays, kNoEffect,
     "compaction_verify_record_count"},
    {{8, 8, 0}, kStays, kNoEffect,
     "daily_offpeak_time_utc"},
    {{9, 2, 0}, kStays, kNoEffect,
     "follower_catchup_retry_count follower_catchup_retry_wait_ms "
     "follower_refresh_catchup_period_ms"},
    {{9, 4, 0}, kStays, kNoEffect,
     "background_close_inactive_wals"},
    {{9, 6, 0}, kStays, kNoEffect,
     "metadata_write_temperature wal_write_temperature"},
    {{9, 7, 0}, kStays, kNoEffect,
     "prefix_seek_opt_in_only"},
    {{10, 1, 0}, kStays, kNoEffect,
     "calculate_sst_write_lifetime_hint_set"},
    {{11, 1, 0}, kStays, kNoEffect,
     "enforce_write_buffer_manager_during_recovery"},
    {{11, 5, 0}, kStays, kNoEffect,
     "use_direct_io_for_compaction_reads"},
    {{11, 8, 0}, kStays, kNoEffect,
     "read_io_executor_threads"},
    {{6, 8, 0}, kStays, kWalPlace,
     "wal_dir"},
    {{6, 8, 0}, kStays, kOtherPaths,
     "db_paths"},
    {{6, 8, 0}, kStays, kLogPlace,
     "db_log_dir"},
    {{6, 8, 0}, kStays, kTwoPhase,
     "allow_2pc"},
    {{6, 8, 0}, kStays, kBuffered,
     "manual_wal_flush"},
    {{6, 8, 0}, kStays, kRecycled,
     "recycle_log_file_num"},
    {{6, 8, 0}, kStays, kRecovery,
     "wal_recovery_mode"},
    {{6, 15, 0}, kStays, kTracked,
     "track_and_verify_wals_in_manifest"},
    {{9, 11, 0}, kStays, kPredecessors,
     "track_and_verify_wals"},
    {{7, 0, 0}, kStays, kCompressedWals,
     "wal_compression"},
    {{11, 3, 0}, kStays, kEmptyWals,
     "async_wal_precreate"},
    {{6, 8, 0}, kStays, kQueues,
     "two_write_queues"},
    {{6, 8, 0}, kStays, kIdentity,
     "write_dbid_to_manifest"},
    {{9, 7, 0}, kStays, kIdentity,
     "write_identity_file"},
    {{6, 8, 0}, kStays, kAtomic,
     "atomic_flush"},
    {{6, 8, 0}, kStays, kDoubt,
     "paranoid_checks"},
    {{11, 2, 0}, kStays, kReusedManifest,
     "reuse_manifest_on_open"},
    {{11, 2, 0}, kStays, kMoreInManifest,
     "fast_sst_open optimize_manifest_for_recovery"},
    {{6, 8, 0}, kStays, kNewManifest,
     "max_manifest_file_size"},
    {{10, 8, 0}, kStays, kNewManifest,
     "max_manifest_space_amp_pct"},
    {{6, 26, 0}, kStays, kWalFilter,
     "wal_filter"},
    {{6, 26, 0}, kStays, kFileChecksums,
     "file_checksum_gen_factory"},
    {{6, 8, 0}, kStays, kIngestBehind,
     "allow_ingest_behind"},
    {{6, 8, 0}, kStays, kForeignFiles,
     "env"},
    {{6, 8, 0}, kStays, kCopySets,
     "allow_mmap_reads allow_mmap_writes avoid_flush_during_recovery "
     "avoid_flush_during_shutdown create_if_missing "
     "create_missing_column_families db_write_buffer_size "
     "enable_pipelined_write error_if_exists info_log info_log_level "
     "log_readahead_size max_background_jobs max_open_files "
     "max_subcompactions max_total_wal_size persist_stats_to_disk row_cache "
     "skip_stats_update_on_db_open sst_file_manager stats_dump_period_sec "
     "stats_persist_period_sec table_cache_numshardbits unordered_write "
     "use_direct_io_for_flush_and_compaction use_direct_reads "
     "WAL_size_limit_MB WAL_ttl_seconds write_buffer_manager"},
    {{6, 9, 0}, kStays, kCopySets,
     "best_efforts_recovery"},
    {{6, 21, 0}, kStays, kCopySets,
     "compaction_service"},
    {{6, 24, 0}, kStays, kCopySets,
     "listeners"},
    {{6, 25, 0}, kStays, kCopySets,
     "statistics"},
    {{6, 28, 0}, kStays, kCopySets,
     "rate_limiter"},
    {{7, 3, 0}, kStays, kCopySets,
     "enforce_single_del_contracts"},
    {{6, 8, 0}, {11, 0, 0}, kCopyQuiets,
     "skip_checking_sst_file_sizes_on_db_open"},
    {{11, 1, 0}, kStays, kCopyQuiets,
     "open_files_async verify_manifest_content_on_close"},
    {{11, 2, 0}, kStays, kCopyQuiets,
     "max_compaction_trigger_wakeup_seconds"},
};

// ColumnFamilyOptions and AdvancedColumnFamilyOptions.
inline constexpr NameRow kFamilyOptions[] = {
    {{6, 8, 0}, kStays, kNoEffect,
     "bloom_locality compaction_options_universal compaction_pri "
     "force_consistency_checks inplace_update_num_locks "
     "max_bytes_for_level_base max_bytes_for_level_multiplier "
     "max_bytes_for_level_multiplier_additional max_compaction_bytes "
     "max_sequential_skip_in_iterations max_successive_merges "
     "memtable_whole_key_filtering optimize_filters_for_hits "
     "paranoid_file_checks report_bg_io_stats target_file_size_base "
     "target_file_size_multiplier"},
    {{6, 8, 0}, kGone, kNoEffect,
     "compaction_measure_io_stats expanded_compaction_factor filter_deletes "
     "max_grandparent_overlap_factor memtable_prefix_bloom_bits "
     "memtable_prefix_bloom_huge_page_tlb_size memtable_prefix_bloom_probes "
     "min_partial_merge_operands source_compaction_factor "
     "verify_checksums_in_compaction"},
    {{6, 8, 0}, {7, 0, 0}, kNoEffect,
     "hard_rate_limit max_mem_compaction_level "
     "purge_redundant_kvs_while_flush rate_limit_delay_max_milliseconds "
     "soft_rate_limit"},
    {{6, 8, 0}, {11, 0, 0}, kNoEffect,
     "snap_refresh_nanos"},
    {{6, 13, 0}, kStays, kNoEffect,
     "blob_file_size min_blob_size"},
    {{6, 14, 0}, {9, 0, 0}, kNoEffect,
     "check_flush_compaction_key_order"},
    {{6, 15, 0}, kStays, kNoEffect,
     "blob_garbage_collection_age_cutoff enable_blob_garbage_collection"},
    {{6, 26, 0}, kStays, kNoEffect,
     "blob_garbage_collection_force_threshold"},
    {{6, 27, 0}, kStays, kNoEffect,
     "blob_compaction_readahead_size"},
    {{7, 0, 0}, {9, 1, 0}, kNoEffect,
     "bottommost_temperature"},
    {{7, 4, 0}, kStays, kNoEffect,
     "blob_file_starting_level"},
    {{7, 5, 0}, kStays, kNoEffect,
     "experimental_mempurge_threshold"},
    {{7, 6, 0}, kStays, kNoEffect,
     "last_level_temperature memtable_protection_bytes_per_key"},
    {{7, 8, 0}, {9, 0, 0}, kNoEffect,
     "ignore_max_compaction_bytes_for_input "
     "level_compaction_dynamic_file_size"},
    {{8, 3, 0}, kStays, kNoEffect,
     "block_protection_bytes_per_key"},
    {{8, 6, 0}, kStays, kNoEffect,
     "bottommost_file_compaction_delay default_temperature "
     "memtable_max_range_deletions"},
    {{9, 1, 0}, kStays, kNoEffect,
     "default_write_temperature strict_max_successive_merges"},
    {{9, 4, 0}, kStays, kNoEffect,
     "uncache_aggressiveness"},
    {{9, 6, 0}, kStays, kNoEffect,
     "paranoid_memory_checks"},
    {{10, 7, 0}, {11, 5, 0}, kNoEffect,
     "memtable_veirfy_per_key_checksum_on_seek"},
    {{10, 8, 0}, kStays, kNoEffect,
     "verify_output_flags"},
    {{10, 9, 0}, kStays, kNoEffect,
     "target_file_size_is_upper_bound"},
    {{11, 1, 0}, kStays, kNoEffect,
     "memtable_batch_lookup_optimization"},
    {{11, 2, 0}, kStays, kNoEffect,
     "blob_compression_opts blob_direct_write_partition_strategy "
     "blob_direct_write_partitions"},
    {{11, 5, 0}, kStays, kNoEffect,
     "memtable_verify_per_key_checksum_on_seek"},
    {{6, 8, 0}, kStays, kOtherPaths,
     "cf_paths"},
    {{6, 8, 0}, kStays, kOrder,
     "comparator"},
    {{6, 8, 0}, kStays, kMerges,
     "merge_operator"},
    {{6, 8, 0}, kStays, kFilters,
     "compaction_filter compaction_filter_factory"},
    {{8, 2, 0}, kStays, kTimestamps,
     "persist_user_defined_timestamps"},
    {{6, 13, 0}, kStays, kBlobs,
     "enable_blob_files"},
    {{11, 2, 0}, kStays, kBlobsInWals,
     "enable_blob_direct_write"},
    {{6, 8, 0}, kStays, kInplace,
     "inplace_update_support"},
    {{6, 8, 0}, kStays, kInplaceCallback,
     "inplace_callback"},
    {{6, 8, 0}, kStays, kTables,
     "block_based_table_factory plain_table_factory table_factory"},
    {{6, 8, 0}, kStays, kCompression,
     "bottommost_compression bottommost_compression_opts compression "
     "compression_opts compression_per_level sample_for_compression"},
    {{6, 13, 0}, kStays, kCompression,
     "blob_compression_type"},
    {{10, 4, 0}, kStays, kCompressors,
     "compression_manager"},
    {{6, 8, 0}, kStays, kPrefixes,
     "prefix_extractor"},
    {{6, 8, 0}, kStays, kStyle,
     "compaction_style num_levels"},
    {{6, 8, 0}, kStays, kAges,
     "compaction_options_fifo periodic_compaction_seconds ttl"},
    {{7, 5, 0}, kStays, kAges,
     "preclude_last_level_data_seconds"},
    {{7, 8, 0}, kStays, kAges,
     "preserve_internal_time_seconds"},
    {{10, 6, 0}, kStays, kIngestBehind,
     "cf_allow_ingest_behind"},
    {{6, 8, 0}, kStays, kLevels,
     "level_compaction_dynamic_level_bytes"},
    {{6, 8, 0}, kStays, kCollectors,
     "table_properties_collector_factories"},
    {{6, 26, 0}, kStays, kCollectors,
     "table_properties_collectors"},
    {{6, 8, 0}, kStays, kFamilySets,
     "arena_block_size compaction_thread_limiter disable_auto_compactions "
     "hard_pending_compaction_bytes_limit level0_file_num_compaction_trigger "
     "level0_slowdown_writes_trigger level0_stop_writes_trigger "
     "max_write_buffer_number max_write_buffer_size_to_maintain memtable "
     "memtable_factory memtable_huge_page_size "
     "memtable_insert_with_hint_prefix_extractor "
     "memtable_prefix_bloom_size_ratio min_write_buffer_number_to_merge "
     "soft_pending_compaction_bytes_limit write_buffer_size"},
    {{6, 26, 0}, kStays, kFamilySets,
     "sst_partitioner_factory"},
    {{7, 4, 0}, kStays, kFamilySets,
     "blob_cache"},
    {{7, 6, 0}, kStays, kFamilySets,
     "prepopulate_blob_cache"},
    {{6, 8, 0}, {10, 2, 0}, kFamilyQuiets,
     "max_write_buffer_number_to_maintain"},
    {{10, 0, 0}, kStays, kFamilyQuiets,
     "disallow_memtable_writes"},
    {{10, 2, 0}, kStays, kFamilyQuiets,
     "memtable_op_scan_flush_trigger"},
    {{10, 4, 0}, kStays, kFamilyQuiets,
     "memtable_avg_op_scan_flush_trigger"},
    {{11, 2, 0}, kStays, kFamilyQuiets,
     "min_tombstones_for_range_conversion "
     "read_triggered_compaction_threshold"},
};

// BlockBasedTableOptions.
inline constexpr NameRow kBlockTableOptions[] = {
    {{6, 8, 0}, kStays, kNoEffect,
     "block_align block_restart_interval block_size block_size_deviation "
     "cache_index_and_filter_blocks_with_high_priority "
     "data_block_hash_table_util_ratio data_block_index_type "
     "enable_index_compression flush_block_policy_factory "
     "index_block_restart_interval index_shortening metadata_block_size "
     "verify_compression whole_key_filtering"},
    {{6, 8, 0}, kGone, kNoEffect,
     "index_per_partition skip_table_builder_flush"},
    {{6, 8, 0}, {7, 1, 0}, kNoEffect,
     "hash_index_allow_collision"},
    {{6, 8, 0}, {8, 0, 0}, kNoEffect,
     "block_cache_compressed"},
    {{6, 12, 0}, kStays, kNoEffect,
     "optimize_filters_for_memory"},
    {{6, 19, 0}, kStays, kNoEffect,
     "max_auto_readahead_size"},
    {{6, 27, 0}, {7, 3, 0}, kNoEffect,
     "reserve_table_builder_memory"},
    {{7, 0, 0}, kStays, kNoEffect,
     "detect_filter_construct_corruption"},
    {{7, 2, 0}, kStays, kNoEffect,
     "initial_auto_readahead_size"},
    {{7, 2, 0}, {7, 3, 0}, kNoEffect,
     "reserve_table_reader_memory"},
    {{7, 3, 0}, kStays, kNoEffect,
     "cache_usage_options"},
    {{7, 7, 0}, kStays, kNoEffect,
     "num_file_reads_for_auto_readahead"},
    {{9, 1, 0}, kStays, kNoEffect,
     "use_delta_encoding"},
    {{9, 6, 0}, kStays, kNoEffect,
     "decouple_partitioned_filters"},
    {{11, 0, 0}, kStays, kNoEffect,
     "index_block_search_type"},
    {{6, 8, 0}, kStays, kFormat,
     "checksum format_version"},
    {{6, 8, 0}, kStays, kIndex,
     "index_type partition_filters"},
    {{10, 5, 0}, kStays, kOwnIndex,
     "user_defined_index_factory"},
    {{10, 6, 0}, kStays, kOwnIndex,
     "fail_if_no_udi_on_open"},
    {{11, 2, 0}, kStays, kOwnIndex,
     "use_udi_as_primary_index"},
    {{11, 0, 0}, kStays, kMarks,
     "separate_key_value_in_data_block"},
    {{11, 1, 0}, kStays, kMarks,
     "uniform_cv_threshold"},
    {{10, 8, 0}, kStays, kPadding,
     "super_block_alignment_size super_block_alignment_space_overhead_ratio"},
    {{6, 8, 0}, kStays, kPolicy,
     "filter_policy"},
    {{6, 8, 0}, kStays, kCaches,
     "block_cache cache_index_and_filter_blocks no_block_cache "
     "persistent_cache pin_l0_filter_and_index_blocks_in_cache "
     "pin_top_level_index_and_filter read_amp_bytes_per_bit"},
    {{6, 15, 0}, kStays, kCaches,
     "metadata_cache_options"},
    {{6, 22, 0}, kStays, kCaches,
     "prepopulate_block_cache"},
};

inline constexpr NameRow kPlainTableOptions[] = {
    {{6, 8, 0}, kStays, kPlainTables,
     "bloom_bits_per_key encoding_type full_scan_mode hash_table_ratio "
     "huge_page_tlb_size index_sparseness store_index_in_file user_key_len"},
};

inline constexpr NameRow kCuckooTableOptions[] = {
    {{6, 8, 0}, kStays, kCuckooTables,
     "cuckoo_block_size hash_table_ratio identity_as_first_hash "
     "max_search_depth use_module_hash"},
};

// CompressionOptions, CompactionOptionsUniversal, CompactionOptionsFIFO and its
// FileTemperatureAge, MetadataCacheOptions, CacheUsageOptions.
inline constexpr NameRow kOptionMembers[] = {
    {{6, 8, 0}, kStays, kCompression,
     "enabled level max_dict_bytes strategy window_bits zstd_max_train_bytes"},
    {{6, 10, 0}, kStays, kCompression,
     "parallel_threads"},
    {{6, 18, 0}, kStays, kCompression,
     "max_dict_buffer_bytes"},
    {{7, 3, 0}, kStays, kCompression,
     "use_zstd_dict_trainer"},
    {{8, 2, 0}, kStays, kCompression,
     "max_compressed_bytes_per_kb"},
    {{8, 6, 0}, kStays, kCompression,
     "checksum"},
    {{6, 8, 0}, kStays, kNoEffect,
     "allow_trivial_move compression_size_percent max_merge_width "
     "max_size_amplification_percent min_merge_width size_ratio stop_style"},
    {{6, 26, 0}, kStays, kNoEffect,
     "incremental"},
    {{9, 4, 0}, kStays, kNoEffect,
     "max_read_amp"},
    {{10, 4, 0}, kStays, kNoEffect,
     "reduce_file_locking"},
    {{6, 8, 0}, kStays, kAges,
     "allow_compaction max_table_files_size ttl"},
    {{6, 24, 0}, kStays, kAges,
     "age_for_warm"},
    {{8, 3, 0}, kStays, kAges,
     "age file_temperature_age_thresholds temperature"},
    {{10, 3, 0}, kStays, kAges,
     "allow_trivial_copy_when_change_temperature trivial_copy_buffer_size"},
    {{11, 0, 0}, kStays, kAges,
     "max_data_files_size use_kv_ratio_compaction"},
    {{6, 15, 0}, kStays, kCaches,
     "partition_pinning top_level_index_pinning unpartitioned_pinning"},
    {{7, 3, 0}, kStays, kCaches,
     "charged options options_overrides"},
};

inline constexpr NameRow kOptionValues[] = {
    {{7, 5, 0}, kStays, kNoEffect,
     "kRoundRobin"},
    {{9, 2, 0}, kStays, kNoEffect,
     "kVolatileCompressedTier"},
    {{10, 7, 0}, kStays, kNoEffect,
     "kCool kIce"},
    {{11, 1, 0}, kStays, kNoEffect,
     "kFlushAndCompaction"},
};

// db/log_format.h, RecordType.
inline constexpr NameRow kWalRecords[] = {
    {{6, 8, 0}, kStays, kLogRecord,
     "kZeroType=0 kFullType=1 kFirstType=2 kMiddleType=3 kLastType=4 "
     "kRecyclableFullType=5 kRecyclableFirstType=6 kRecyclableMiddleType=7 "
     "kRecyclableLastType=8"},
    {{7, 0, 0}, kStays, kNeedsRelease,
     "kSetCompressionType=9"},
    {{8, 3, 0}, kStays, kNeedsRelease,
     "kUserDefinedTimestampSizeType=10 "
     "kRecyclableUserDefinedTimestampSizeType=11"},
    {{9, 11, 0}, kStays, kNeedsRelease,
     "kPredecessorWALInfoType=130 kRecyclePredecessorWALInfoType=131"},
};

// db/dbformat.h, ValueType. The last two are internal marks of RocksDB: no file
// contains them, and the number of one of them has changed.
inline constexpr NameRow kValueTypes[] = {
    {{6, 8, 0}, kStays, kBatchEntry,
     "kTypeDeletion=0 kTypeValue=1 kTypeMerge=2 kTypeLogData=3 "
     "kTypeColumnFamilyDeletion=4 kTypeColumnFamilyValue=5 "
     "kTypeColumnFamilyMerge=6 kTypeSingleDeletion=7 "
     "kTypeColumnFamilySingleDeletion=8 kTypeBeginPrepareXID=9 "
     "kTypeEndPrepareXID=10 kTypeCommitXID=11 kTypeRollbackXID=12 "
     "kTypeNoop=13 kTypeColumnFamilyRangeDeletion=14 kTypeRangeDeletion=15"},
    {{6, 8, 0}, kStays, kBlobEntry,
     "kTypeColumnFamilyBlobIndex=16 kTypeBlobIndex=17"},
    {{6, 8, 0}, kStays, kBatchOfPolicy,
     "kTypeBeginPersistedPrepareXID=18 kTypeBeginUnprepareXID=19"},
    {{6, 11, 0}, kStays, kStampedEntry,
     "kTypeDeletionWithTimestamp=20"},
    {{6, 28, 0}, kStays, kBatchEntry,
     "kTypeCommitXIDAndTimestamp=21"},
    {{7, 5, 0}, kStays, kEntity,
     "kTypeWideColumnEntity=22 kTypeColumnFamilyWideColumnEntity=23"},
    {{8, 11, 0}, kStays, kBatchEntry,
     "kTypeValuePreferredSeqno=24 kTypeColumnFamilyValuePreferredSeqno=25"},
    {{6, 8, 0}, kStays, kNoEffect,
     "kMaxValue kTypeMaxValid"},
};

// db/version_edit.h, Tag.
inline constexpr NameRow kManifestTags[] = {
    {{6, 8, 0}, kStays, kEditTag,
     "kComparator=1 kLogNumber=2 kNextFileNumber=3 kLastSequence=4 "
     "kCompactCursor=5 kDeletedFile=6 kNewFile=7 kPrevLogNumber=9 "
     "kMinLogNumberToKeep=10 kNewFile2=100 kNewFile3=102 kNewFile4=103 "
     "kColumnFamily=200 kColumnFamilyAdd=201 kColumnFamilyDrop=202 "
     "kMaxColumnFamily=203 kInAtomicGroup=300 kDbId=8193"},
    {{6, 8, 0}, {7, 5, 0}, kEditTag,  // old name of kCompactCursor
     "kCompactPointer=5"},
    // kBlobFileAddition and kBlobFileGarbage up to 6.16.
    {{6, 9, 0}, kStays, kEditTag,
     "kBlobFileAddition_DEPRECATED=8194 kBlobFileGarbage_DEPRECATED=8195"},
    {{6, 13, 0}, kStays, kEditTag,
     "kWalAddition=8196 kWalDeletion=8197"},
    {{6, 16, 0}, kStays, kEditTag,
     "kFullHistoryTsLow=8198 kWalAddition2=8199 kWalDeletion2=8200"},
    {{6, 17, 0}, kStays, kEditTag,
     "kBlobFileAddition=400 kBlobFileGarbage=401"},
    {{8, 6, 0}, kStays, kEditTag,
     "kPersistUserDefinedTimestamps=8201"},
    {{10, 8, 0}, kStays, kIgnoredTag,
     "kSubcompactionProgress=8202"},
    {{11, 3, 0}, kStays, kIgnoredTag,
     "kLastCompactedManifestFileSize=8203"},
    {{6, 9, 0}, kStays, kNoEffect,  // a bit, not a tag
     "kTagSafeIgnoreMask=8192"},
};

// db/version_edit.h, NewFileCustomTag.
inline constexpr NameRow kTableFields[] = {
    {{6, 8, 0}, kStays, kEditTag,
     "kTerminate=1 kNeedCompaction=2 kMinLogNumberToKeepHack=3 "
     "kOldestBlobFileNumber=4 kOldestAncesterTime=5 kFileCreationTime=6 "
     "kFileChecksum=7 kFileChecksumFuncName=8 kPathId=65"},
    {{6, 21, 0}, kStays, kEditTag,
     "kTemperature=9"},
    {{6, 27, 0}, kStays, kEditTag,
     "kMinTimestamp=10 kMaxTimestamp=11"},
    {{7, 3, 0}, kStays, kEditTag,
     "kUniqueId=12"},
    {{7, 10, 0}, kStays, kEditTag,
     "kEpochNumber=13 kCompensatedRangeDeletionSize=14"},
    {{8, 3, 0}, kStays, kEditTag,
     "kTailSize=15"},
    {{8, 4, 0}, kStays, kEditTag,
     "kUserDefinedTimestampsPersisted=16"},
    {{11, 2, 0}, kStays, kEditTag,
     "kFileOpenMetadata=17"},
    {{6, 13, 0}, kStays, kNoEffect,  // a bit, not a field
     "kCustomTagNonSafeIgnoreMask=64"},
};

// db/wal_edit.h, WalAdditionTag.
inline constexpr NameRow kWalFields[] = {
    {{6, 13, 0}, kStays, kEditTag,
     "kTerminate=1"},
    {{6, 13, 0}, {6, 14, 0}, kEditTag,  // old name of kSyncedSize
     "kSize=2"},
    {{6, 14, 0}, kStays, kEditTag,
     "kSyncedSize=2"},
    {{6, 14, 0}, {6, 15, 0}, kOfOneRelease,
     "kClosed=3"},
};

// rocksdb/types.h, FileType. A replica gets no files of a kind without an
// effect.
inline constexpr NameRow kFileKinds[] = {
    {{6, 8, 0}, kStays, kNoEffect,
     "kTempFile kInfoLogFile kMetaDatabase"},
    {{10, 8, 0}, kStays, kNoEffect,
     "kCompactionProgressFile"},
    {{6, 8, 0}, {6, 15, 0}, kWalFiles,  // old name of kWalFile
     "kLogFile"},
    {{6, 15, 0}, kStays, kWalFiles,
     "kWalFile"},
    {{6, 8, 0}, kStays, kDataFiles,
     "kTableFile kBlobFile"},
    {{6, 8, 0}, kStays, kNewManifest,
     "kDescriptorFile kCurrentFile"},
    {{6, 8, 0}, kStays, kIdentity,
     "kIdentityFile"},
    {{6, 8, 0}, kStays, kOptionsFiles,
     "kOptionsFile"},
    {{6, 8, 0}, kStays, kLockFiles,
     "kDBLockFile"},
};

struct KnownRows {
  KnownKind kind;
  std::span<const NameRow> rows;
};

inline constexpr KnownRows kAllRows[] = {
    {KnownKind::kDatabaseOption, kDatabaseOptions},
    {KnownKind::kFamilyOption, kFamilyOptions},
    {KnownKind::kBlockTableOption, kBlockTableOptions},
    {KnownKind::kPlainTableOption, kPlainTableOptions},
    {KnownKind::kCuckooTableOption, kCuckooTableOptions},
    {KnownKind::kOptionMember, kOptionMembers},
    {KnownKind::kOptionValue, kOptionValues},
    {KnownKind::kWalRecord, kWalRecords},
    {KnownKind::kValueType, kValueTypes},
    {KnownKind::kManifestTag, kManifestTags},
    {KnownKind::kTableField, kTableFields},
    {KnownKind::kWalField, kWalFields},
    {KnownKind::kFileKind, kFileKinds},
};

}  // namespace sstferry::known_table
