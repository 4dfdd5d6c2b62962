// State of a database as recorded in its MANIFEST: column families, files and
// WALs.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "format/digest.h"
#include "format/rocksdb/blob_check.h"

namespace sstferry {

struct ManifestFile {
  uint64_t number = 0;
  uint32_t path_id = 0;
  int level = 0;
  uint64_t bytes = 0;
  // Smallest and largest internal key: the user key, then 8 bytes of sequence
  // number and type. The user key lacks its timestamp if `has_timestamps` is
  // false.
  std::string smallest;
  std::string largest;
  uint64_t smallest_sequence = 0;
  uint64_t largest_sequence = 0;
  uint64_t oldest_blob_file = 0;       // 0: none
  uint64_t oldest_ancestor_time = 0;   // seconds since 1970; 0: unknown
  uint64_t creation_time = 0;          // seconds since 1970; 0: unknown
  uint64_t epoch = 0;                  // 0: unknown
  uint64_t tail_bytes = 0;             // 0: unknown
  uint8_t temperature = 0;             // 0: unknown
  bool marked_for_compaction = false;
  // True if the file's keys include their user timestamps.
  bool has_timestamps = true;
  // The 16 bytes of the unique id as two little-endian integers, `high` first.
  bool has_unique_id = false;
  Digest128 unique_id;
  std::string checksum;
  std::string checksum_function;       // empty: no checksum
};

struct ManifestBlobFile {
  uint64_t number = 0;
  uint64_t total_count = 0;
  uint64_t total_bytes = 0;
  uint64_t garbage_count = 0;
  uint64_t garbage_bytes = 0;

  // Returns the size of the file. `total_bytes` counts only the records.
  uint64_t file_bytes() const {
    return kBlobHeaderBytes + total_bytes + kBlobFooterBytes;
  }
};

struct ManifestFamily {
  uint32_t id = 0;
  std::string name;
  std::string comparator;  // empty: not written
  bool persists_timestamps = true;
  std::string full_history_ts_low;
  uint64_t log_number = 0;  // oldest WAL with entries that are not in `files`
  std::map<uint64_t, ManifestFile> files;      // by number
  // The blob files that RocksDB keeps. RocksDB drops files older than the
  // oldest blob file to which a table in `files` refers. It also drops files
  // that are all garbage, unless they are the oldest blob file of a table.
  std::map<uint64_t, ManifestBlobFile> blobs;  // by number
};

// Size of a WAL that the MANIFEST tracks without a size.
inline constexpr uint64_t kUnknownWalBytes = UINT64_MAX;

struct ManifestState {
  std::map<uint32_t, ManifestFamily> families;  // by id; always has 0
  std::string database_id;
  uint64_t next_file = 0;
  uint64_t last_sequence = 0;
  uint32_t max_family = 0;
  uint64_t min_log_number_to_keep = 0;
  uint64_t prev_log_number = 0;
  // WALs that are tracked by track_and_verify_wals_in_manifest: a map from the
  // WAL's number to its synced bytes, or to kUnknownWalBytes.
  std::map<uint64_t, uint64_t> wals;
  uint64_t deleted_wals_before = 0;
};

// Returns the number of the oldest WAL that recovery replays. As in RocksDB,
// recovery skips WALs that the MANIFEST no longer keeps. Without allow_2pc, it
// also skips WALs before the smallest `log_number` of the families to open,
// which are those in `opened`, or all families if it is null.
uint64_t OldestNeededWal(const ManifestState& state, bool allow_2pc,
                         const std::set<std::string>* opened = nullptr);

// Returns the number of the oldest WAL that recovery could need with any
// options.
uint64_t OldestToHold(const ManifestState& state);

}  // namespace sstferry
