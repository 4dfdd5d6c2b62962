// Decodes the properties block of a table file.
//
// The block has one entry per property, keys strictly increasing bytewise.
// Numbers are varint64 except where noted; other values are text or raw bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Internal keys: user key, then 8 bytes little-endian: sequence << 8 | type.
inline constexpr size_t kSstKeyTrailerBytes = 8;

enum class SstIndexType : uint32_t {
  kBinarySearch = 0,
  kHashSearch = 1,
  kTwoLevel = 2,
  kBinarySearchWithFirstKey = 3,
};

const char* SstIndexTypeName(SstIndexType type);

struct SstProperties {
  uint64_t num_entries = 0;
  uint64_t num_deletions = 0;  // point, single and range deletions
  uint64_t num_merge_operands = 0;
  uint64_t num_range_deletions = 0;
  uint64_t num_data_blocks = 0;
  uint64_t num_filter_entries = 0;
  uint64_t raw_key_bytes = 0;    // of internal keys
  uint64_t raw_value_bytes = 0;
  uint64_t data_bytes = 0;       // of data blocks, trailers and padding
  uint64_t index_bytes = 0;
  uint64_t filter_bytes = 0;
  uint64_t index_partitions = 0;
  uint64_t top_level_index_bytes = 0;
  uint64_t index_key_is_user_key = 0;
  uint64_t index_value_is_delta_encoded = 0;
  uint64_t fixed_key_bytes = 0;
  uint64_t property_format_version = 0;
  uint64_t has_separated_values = 0;  // in data blocks
  uint64_t num_uniform_blocks = 0;    // index blocks marked as uniform
  uint64_t column_family_id = 0;
  uint64_t original_file_number = 0;
  uint64_t creation_time = 0;  // seconds since 1970, like the next two
  uint64_t oldest_key_time = 0;
  uint64_t file_creation_time = 0;
  SstIndexType index_type = SstIndexType::kBinarySearch;  // 4 bytes

  std::string column_family_name;
  std::string comparator;
  std::string merge_operator;
  std::string prefix_extractor;
  std::string filter_policy;
  std::string compression;
  std::string compression_options;
  std::string property_collectors;
  std::string db_id;
  std::string db_session_id;
  std::string db_host_id;

  // Present only in files made for ingestion.
  std::optional<uint32_t> external_version;       // 4 bytes
  std::optional<uint64_t> external_global_seqno;  // 8 bytes

  // All properties as stored, including the decoded ones.
  std::map<std::string, std::string> all;

  uint64_t key_trailer_bytes() const {
    return num_entries * kSstKeyTrailerBytes;
  }
  // REQUIRES: raw_key_bytes is at least key_trailer_bytes().
  uint64_t user_key_bytes() const {
    return raw_key_bytes - key_trailer_bytes();
  }
};

// Corruption   malformed block, keys not strictly increasing, a malformed
//              number, an unknown index type.
// `file_offset` is used only in messages.
[[nodiscard]] rocksdb::Status DecodeSstProperties(
    const rocksdb::Slice& contents, uint64_t file_offset, SstProperties* out);

// Formats a property's value for display: its number, its text, or hex.
std::string DescribeSstProperty(const std::string& name,
                                const std::string& value);

}  // namespace sstferry
