#include "format/release.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <string_view>
#include <unordered_map>

namespace sstferry {
namespace {

constexpr uint32_t kMaxNumber = 9999;
constexpr uint32_t kOldestFormatVersion = 5;
constexpr RocksDbRelease kNone{kMaxNumber, 0, 0};  // of a later format_version

struct NamesSince {
  RocksDbRelease release;
  const char* names;  // with a blank between them
};

// Names that OPTIONS files have. Source: the tables of options in the code of
// each release (options/cf_options.cc, options/db_options.cc,
// table/block_based/block_based_table_factory.cc).
constexpr NamesSince kOptionsSince[] = {
    {{6, 13, 0},
     "blob_compression_type blob_file_size enable_blob_files "
     "min_blob_size"},
    {{6, 14, 0},
     "allow_data_in_errors check_flush_compaction_key_order"},
    {{6, 15, 0},
     "blob_garbage_collection_age_cutoff db_host_id "
     "enable_blob_garbage_collection metadata_cache_options "
     "track_and_verify_wals_in_manifest"},
    {{6, 19, 0},
     "max_auto_readahead_size"},
    {{6, 21, 0},
     "flush_verify_memtable_count"},
    {{6, 22, 0},
     "prepopulate_block_cache"},
    {{6, 23, 0},
     "experimental_allow_mempurge"},
    {{6, 24, 0},
     "experimental_mempurge_policy listeners"},
    {{6, 26, 0},
     "blob_garbage_collection_force_threshold file_checksum_gen_factory "
     "lowest_used_cache_tier sst_partitioner_factory "
     "table_properties_collectors wal_filter"},
    {{6, 27, 0},
     "blob_compaction_readahead_size reserve_table_builder_memory"},
    {{7, 0, 0},
     "bottommost_temperature detect_filter_construct_corruption "
     "wal_compression"},
    {{7, 2, 0},
     "initial_auto_readahead_size reserve_table_reader_memory"},
    {{7, 3, 0},
     "enforce_single_del_contracts verify_sst_unique_id_in_manifest"},
    {{7, 4, 0},
     "blob_cache blob_file_starting_level"},
    // The threshold was an option of the whole database before.
    {{7, 5, 0},
     "experimental_mempurge_threshold preclude_last_level_data_seconds"},
    {{7, 6, 0},
     "last_level_temperature memtable_protection_bytes_per_key "
     "prepopulate_blob_cache"},
    {{7, 7, 0},
     "num_file_reads_for_auto_readahead"},
    {{7, 8, 0},
     "ignore_max_compaction_bytes_for_input "
     "level_compaction_dynamic_file_size preserve_internal_time_seconds"},
    {{8, 2, 0},
     "persist_user_defined_timestamps"},
    {{8, 3, 0},
     "block_protection_bytes_per_key"},
    {{8, 6, 0},
     "bottommost_file_compaction_delay compaction_verify_record_count "
     "default_temperature memtable_max_range_deletions"},
    {{8, 8, 0},
     "daily_offpeak_time_utc"},
    {{9, 1, 0},
     "default_write_temperature strict_max_successive_merges "
     "use_delta_encoding"},
    {{9, 2, 0},
     "follower_catchup_retry_count follower_catchup_retry_wait_ms "
     "follower_refresh_catchup_period_ms"},
    {{9, 4, 0},
     "background_close_inactive_wals uncache_aggressiveness"},
    {{9, 6, 0},
     "decouple_partitioned_filters metadata_write_temperature "
     "paranoid_memory_checks wal_write_temperature"},
    {{9, 7, 0},
     "prefix_seek_opt_in_only write_identity_file"},
    {{9, 11, 0},
     "track_and_verify_wals"},
    {{10, 0, 0},
     "disallow_memtable_writes"},
    {{10, 2, 0},
     "memtable_op_scan_flush_trigger"},
    {{10, 4, 0},
     "compression_manager memtable_avg_op_scan_flush_trigger"},
    {{10, 5, 0},
     "user_defined_index_factory"},
    {{10, 6, 0},
     "cf_allow_ingest_behind fail_if_no_udi_on_open"},
    {{10, 7, 0},
     "memtable_veirfy_per_key_checksum_on_seek"},
    {{10, 8, 0},
     "max_manifest_space_amp_pct super_block_alignment_size "
     "super_block_alignment_space_overhead_ratio verify_output_flags"},
    {{10, 9, 0},
     "target_file_size_is_upper_bound"},
    {{11, 0, 0},
     "index_block_search_type separate_key_value_in_data_block"},
    {{11, 1, 0},
     "enforce_write_buffer_manager_during_recovery "
     "memtable_batch_lookup_optimization open_files_async "
     "uniform_cv_threshold verify_manifest_content_on_close"},
    {{11, 2, 0},
     "blob_compression_opts blob_direct_write_partition_strategy "
     "blob_direct_write_partitions enable_blob_direct_write "
     "fast_sst_open max_compaction_trigger_wakeup_seconds "
     "min_tombstones_for_range_conversion optimize_manifest_for_recovery "
     "read_triggered_compaction_threshold reuse_manifest_on_open "
     "use_udi_as_primary_index"},
    {{11, 3, 0},
     "async_wal_precreate"},
    {{11, 5, 0},
     "memtable_verify_per_key_checksum_on_seek "
     "use_direct_io_for_compaction_reads"},
    {{11, 8, 0},
     "read_io_executor_threads"},
};

// Members of ..._compression_opts and compaction_options_...
constexpr NamesSince kMembersSince[] = {
    {{6, 18, 0},
     "max_dict_buffer_bytes"},
    {{6, 24, 0},
     "age_for_warm"},
    {{6, 26, 0},
     "incremental"},
    {{7, 3, 0},
     "use_zstd_dict_trainer"},
    {{8, 2, 0},
     "max_compressed_bytes_per_kb"},
    {{8, 3, 0},
     "file_temperature_age_thresholds"},
    {{8, 6, 0},
     "checksum"},
    {{9, 4, 0},
     "max_read_amp"},
    {{10, 3, 0},
     "allow_trivial_copy_when_change_temperature "
     "trivial_copy_buffer_size"},
    {{10, 4, 0},
     "reduce_file_locking"},
    {{11, 0, 0},
     "max_data_files_size use_kv_ratio_compaction"},
};

// Values of options that are older themselves.
constexpr NamesSince kValuesSince[] = {
    {{7, 5, 0}, "kRoundRobin"},
    {{9, 2, 0}, "kVolatileCompressedTier"},
    {{10, 7, 0}, "kCool kIce"},
    {{11, 1, 0}, "kFlushAndCompaction"},
};

using Firsts = std::unordered_map<std::string_view, RocksDbRelease>;

Firsts FirstsOf(std::span<const NamesSince> table) {
  Firsts firsts;
  for (const NamesSince& row : table) {
    std::string_view rest = row.names;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find(' '), rest.size());
      firsts.emplace(rest.substr(0, end), row.release);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return firsts;
}

RocksDbRelease FirstIn(const Firsts& firsts, const std::string& name) {
  const auto found = firsts.find(name);
  return found == firsts.end() ? RocksDbRelease() : found->second;
}

}  // namespace

std::string ReleaseName(const RocksDbRelease& release) {
  if (!release.is_known()) {
    return "";
  }
  if (release == kNone) {
    return "(unknown)";
  }
  std::string name =
      std::to_string(release.major) + "." + std::to_string(release.minor);
  if (release.patch != 0) {
    name += "." + std::to_string(release.patch);
  }
  return name;
}

std::string ReleaseNumbers(const RocksDbRelease& release) {
  return std::to_string(release.major) + "." + std::to_string(release.minor) +
         "." + std::to_string(release.patch);
}

bool ParseRelease(const rocksdb::Slice& text, RocksDbRelease* release) {
  *release = RocksDbRelease();
  uint32_t* const numbers[] = {&release->major, &release->minor,
                               &release->patch};
  size_t at = 0;
  for (size_t i = 0; i < std::size(numbers); ++i) {
    const size_t begin = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9' &&
           *numbers[i] <= kMaxNumber) {
      *numbers[i] = *numbers[i] * 10 + static_cast<uint32_t>(text[at++] - '0');
    }
    if (at == begin || *numbers[i] > kMaxNumber) {
      *release = RocksDbRelease();
      return false;
    }
    if (at == text.size()) {
      break;
    }
    const bool more = i + 1 < std::size(numbers);
    if (text[at] != '.' && (more || text[at] != '-')) {
      *release = RocksDbRelease();
      return false;
    }
    ++at;
  }
  return release->is_known();
}

RocksDbRelease FirstWithFormat(uint32_t format_version) {
  for (const RocksDbRelease& first :
       {RocksDbRelease{6, 6, 0}, RocksDbRelease{8, 6, 0},
        RocksDbRelease{10, 4, 0}, RocksDbRelease{11, 10, 0}}) {
    if (format_version <= MaxFormatVersion(first)) {
      return first;
    }
  }
  return kNone;
}

RocksDbRelease FirstWithOption(const std::string& name) {
  static const Firsts firsts = FirstsOf(kOptionsSince);
  return FirstIn(firsts, name);
}

RocksDbRelease FirstWithOptionMember(const std::string& name) {
  static const Firsts firsts = FirstsOf(kMembersSince);
  return FirstIn(firsts, name);
}

RocksDbRelease FirstWithOptionValue(const std::string& value) {
  static const Firsts firsts = FirstsOf(kValuesSince);
  return FirstIn(firsts, value);
}

void Needs::Add(const RocksDbRelease& release, const std::string& what) {
  if (latest_.release < release) {
    latest_ = {release, what};
  }
}

void Needs::AddFormatVersion(uint32_t format_version) {
  if (format_version > kOldestFormatVersion) {
    Add(FirstWithFormat(format_version),
        "format_version " + std::to_string(format_version));
  }
}

void Needs::AddWalRecord(uint8_t type) {
  constexpr uint8_t kCompression = 9;
  constexpr uint8_t kFirstIgnorable = 128;
  const std::string what = "WAL records of type " + std::to_string(type);
  if (type == kCompression) {
    Add(kReadsCompressedWals, what);
  } else if (type > kCompression && type < kFirstIgnorable) {
    Add(kReadsTimestampRecords, what);
  } else if (type >= kFirstIgnorable) {
    Add(kIgnoresWalRecords, what);
  }
}

}  // namespace sstferry
