// Applies the records of a MANIFEST: which column families, files and WALs a
// database consists of. format/rocksdb/README.md lists the tags.
// (RocksDB: db/version_edit.cc, db/version_edit_handler.cc.)
//
// A record is a version edit: a row of a varint32 tag and its fields, in any
// order, about one column family (0 unless a tag says another).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

#include "format/digest.h"

namespace sstferry {

struct ManifestFile {
  uint64_t number = 0;
  uint32_t path_id = 0;
  int level = 0;
  uint64_t bytes = 0;
  // INTERNAL keys: the user key and 8 bytes of sequence and type. Without the
  // user timestamp when `has_timestamps` is false.
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
  bool has_timestamps = true;          // keys of the file carry theirs
  // The 16 bytes of the id as two little-endian integers, `high` first.
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
};

struct ManifestFamily {
  uint32_t id = 0;
  std::string name;
  std::string comparator;  // empty: not written
  bool persists_timestamps = true;
  std::string full_history_ts_low;
  uint64_t log_number = 0;  // the oldest WAL with entries not in `files`
  std::map<uint64_t, ManifestFile> files;      // by number
  // Those that RocksDB keeps: not all garbage, and none older than the oldest
  // that a file of `files` needs.
  std::map<uint64_t, ManifestBlobFile> blobs;  // by number
};

// WALs that the MANIFEST tracks and whose size it does not tell.
inline constexpr uint64_t kUnknownWalBytes = UINT64_MAX;

struct ManifestState {
  std::map<uint32_t, ManifestFamily> families;  // by id; 0 is always there
  std::string database_id;
  uint64_t next_file = 0;
  uint64_t last_sequence = 0;
  uint32_t max_family = 0;
  uint64_t min_log_number_to_keep = 0;
  uint64_t prev_log_number = 0;
  // track_and_verify_wals_in_manifest: number to synced bytes, or
  // kUnknownWalBytes.
  std::map<uint64_t, uint64_t> wals;
  uint64_t deleted_wals_before = 0;
};

// Owner:   borrows nothing.
// Threads: one at a time.
// Memory:  the state and the records of an open atomic group; both are made of
//          bytes that were read, no length is believed before.
class ManifestReader {
 public:
  ManifestReader();
  ~ManifestReader();
  ManifestReader(const ManifestReader&) = delete;
  ManifestReader& operator=(const ManifestReader&) = delete;

  // One record. After a failure the reader is of no more use.
  //   Corruption    damaged, or against the state (a file that is added twice
  //                 or deleted without being there, a broken atomic group).
  //   NotSupported  a tag that this version does not know and RocksDB does not
  //                 let a reader ignore.
  [[nodiscard]] rocksdb::Status Add(const rocksdb::Slice& record);

  // After all complete records and groups.
  const ManifestState& state() const { return state_; }

  // An atomic group is not complete: its records are not in state().
  bool in_group() const { return !group_.empty(); }

 private:
  struct Edit;

  rocksdb::Status Apply(Edit* edit);
  rocksdb::Status ApplyFiles(Edit* edit, ManifestFamily* family);
  rocksdb::Status ApplyBlobs(const Edit& edit, ManifestFamily* family);
  rocksdb::Status ApplyWals(const Edit& edit);
  void ApplyNumbers(const Edit& edit, ManifestFamily* family);
  void DropUnneededBlobs(ManifestFamily* family);

  ManifestState state_;
  std::vector<Edit> group_;
  uint64_t group_size_ = 0;
  // How many files of a family name a blob file as their oldest.
  std::map<uint32_t, std::map<uint64_t, uint64_t>> blob_links_;
};

// The oldest WAL that recovery replays: as RocksDB, what the MANIFEST keeps,
// and without allow_2pc nothing older than every family's `log_number`.
uint64_t OldestNeededWal(const ManifestState& state, bool allow_2pc);

}  // namespace sstferry
