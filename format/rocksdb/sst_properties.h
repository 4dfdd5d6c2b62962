// Decodes the properties of a table file that sstferry needs.
//
// A properties block has one entry for each property, with keys that strictly
// increase bytewise. A number is a varint64 except where noted. Other values
// are text or raw bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "format/digest.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Internal keys: user key, then 8 bytes little-endian: sequence << 8 | type.
inline constexpr size_t kSstKeyTrailerBytes = 8;

// Returns the user key of an internal key; empty if the internal key is shorter
// than its trailer.
inline rocksdb::Slice UserKeyOf(const rocksdb::Slice& internal_key) {
  return {internal_key.data(),
          internal_key.size() -
              std::min(internal_key.size(), kSstKeyTrailerBytes)};
}

enum class SstIndexType : uint32_t {
  kBinarySearch = 0,
  kHashSearch = 1,
  kTwoLevel = 2,
  kBinarySearchWithFirstKey = 3,
};

struct SstProperties {
  uint64_t num_entries = 0;
  uint64_t num_deletions = 0;  // point, single and range deletions
  uint64_t num_merge_operands = 0;
  uint64_t num_range_deletions = 0;
  uint64_t num_data_blocks = 0;
  uint64_t raw_key_bytes = 0;    // bytes of internal keys
  uint64_t data_bytes = 0;       // data blocks including trailers and padding
  uint64_t index_key_is_user_key = 0;
  uint64_t index_value_is_delta_encoded = 0;
  uint64_t has_separated_values = 0;  // in data blocks
  uint64_t num_uniform_blocks = 0;    // index blocks marked as uniform
  uint64_t original_file_number = 0;
  SstIndexType index_type = SstIndexType::kBinarySearch;  // 4 bytes

  std::string comparator;
  std::string compression;
  std::string compression_options;
  std::string db_id;
  std::string db_session_id;

  // True if the table has blobs of its own. References to them name file 0.
  bool has_embedded_blobs = false;

  Digest128 digest;  // digest of the block, including unknown properties

  // Only in files made for ingestion.
  std::optional<uint32_t> external_version;       // 4 bytes
  std::optional<uint64_t> external_global_seqno;  // 8 bytes

  uint64_t key_trailer_bytes() const {
    return num_entries * kSstKeyTrailerBytes;
  }
};

// Decodes a properties block. `file_offset` is used only in messages.
// Corruption   malformed block, keys not strictly increasing, a malformed
//              number, an unknown index type.
[[nodiscard]] rocksdb::Status DecodeSstProperties(
    const rocksdb::Slice& contents, uint64_t file_offset, SstProperties* out);

}  // namespace sstferry
