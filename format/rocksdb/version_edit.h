// One decoded record of a MANIFEST, before it is applied to a state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

#include "format/limits.h"
#include "format/rocksdb/manifest_state.h"

namespace sstferry {

struct VersionEdit {
  uint32_t family_id = 0;
  bool adds_family = false;
  bool drops_family = false;
  std::string family_name;
  std::vector<std::pair<int, uint64_t>> deleted_files;  // level, number
  std::vector<ManifestFile> new_files;
  std::vector<ManifestBlobFile> blob_additions;
  // Garbage in blob files; only the garbage counts are set.
  std::vector<ManifestBlobFile> blob_garbage;
  std::vector<std::pair<uint64_t, uint64_t>> wal_additions;  // number, bytes
  uint64_t wals_deleted_before = 0;
  std::optional<std::string> database_id;
  std::optional<std::string> comparator;
  bool persists_timestamps = true;
  std::string full_history_ts_low;
  std::optional<uint64_t> log_number;
  std::optional<uint64_t> prev_log_number;
  std::optional<uint64_t> next_file;
  std::optional<uint64_t> last_sequence;
  std::optional<uint64_t> min_log_number_to_keep;
  std::optional<uint32_t> max_family;
  bool in_group = false;
  uint32_t records_behind = 0;  // number of later records in the group
  // True if the edit has an unknown tag or field that RocksDB lets a reader
  // ignore.
  bool has_unknown = false;
  uint64_t memory_bytes = 0;  // memory of its items and texts

  bool IsAboutWals() const {
    return !wal_additions.empty() || wals_deleted_before > 0;
  }
};

// Bytes of memory in addition to a value in a std::map, and bytes that a blob
// file and a WAL take in a ManifestState.
inline constexpr uint64_t kNodeBytes = 48;
inline constexpr uint64_t kBlobBytes = sizeof(ManifestBlobFile) + kNodeBytes;
inline constexpr uint64_t kWalMemoryBytes = sizeof(uint64_t) + kNodeBytes;
// Returns the bytes that a table takes in a ManifestState.
uint64_t MemoryOf(const ManifestFile& file);
// Returns the error kRefused for a MANIFEST that needs more than `max_bytes` of
// memory.
[[nodiscard]] rocksdb::Status ManifestTooLarge(uint64_t max_bytes);

// Decodes `record`. Threads: any. Memory: copies of bytes of `record`.
//   Corruption    the record is damaged.
//   NotSupported  this version does not know a tag, and RocksDB does not let a
//                 reader ignore it; or the edit needs more than
//                 `max_memory_bytes`.
[[nodiscard]] rocksdb::Status DecodeVersionEdit(
    const rocksdb::Slice& record, VersionEdit* edit,
    uint64_t max_memory_bytes = kMaxManifestMemoryBytes);

}  // namespace sstferry
