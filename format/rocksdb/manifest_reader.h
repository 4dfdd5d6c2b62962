// Applies the records of a MANIFEST to a state: the column families, files and
// WALs of a database. format/rocksdb/README.md lists the tags. (RocksDB:
// db/version_edit.cc, db/version_edit_handler.cc.)
//
// A record is a version edit: pairs of a varint32 tag and its fields, in any
// order, about one column family (0 unless a tag specifies another).
//
// A MANIFEST may end inside a record or inside an atomic group, because its
// owner is writing it, or crashed while writing it. RocksDB opens such a
// database without the incomplete end. It does not open a database with a
// damaged record or with too few records. All code that reads a MANIFEST uses
// Follow(), which decides like RocksDB.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

#include "format/byte_source.h"
#include "format/limits.h"
#include "format/rocksdb/log_follower.h"
#include "format/rocksdb/manifest_state.h"
#include "format/rocksdb/version_edit.h"

namespace sstferry {

// Reads the records of one MANIFEST in order.
//
// Owner:   borrows nothing.
// Threads: one at a time.
// Memory:  the state with the records of an open atomic group, and one record
//          of the log, each at most kMaxManifestMemoryBytes. Only bytes that
//          were read take memory, so a false length allocates nothing.
class ManifestReader {
 public:
  // Receives each edit before it is applied to the state. During the call,
  // end() is already the offset after the edit's record or group.
  using Watch = std::function<void(const VersionEdit& edit,
                                   const ManifestState& before)>;

  // `watch` may be null. `max_memory_bytes` limits the memory of the state and
  // an open group.
  explicit ManifestReader(Watch watch = nullptr,
                          uint64_t max_memory_bytes = kMaxManifestMemoryBytes);
  ManifestReader(const ManifestReader&) = delete;
  ManifestReader& operator=(const ManifestReader&) = delete;

  // Applies the complete records that earlier calls have not applied. May be
  // called again after the MANIFEST has grown. After an error, the reader must
  // not be used, unless it is an error that `source` returned, or is_damaged()
  // is true.
  //   Corruption  as Add(); or is_damaged(): the text has the record's offset,
  //               and what was expected and found there
  //   others      errors of LogFollower::Follow(), Add() and `source`
  [[nodiscard]] rocksdb::Status Follow(const ByteSource& source);

  // Returns true if the last Follow() found that RocksDB opens no database with
  // this MANIFEST. Either a record is damaged (LogFollower::is_damaged()), or
  // no record has a log number, the next file or the last sequence. A later
  // Follow() may find no damage, because the owner may have been writing during
  // the last one.
  bool is_damaged() const { return is_damaged_; }

  // Returns the offset after the last complete record or group that Follow()
  // has read.
  uint64_t end() const { return end_; }

  // Applies one record. After an error, the reader must not be used.
  //   Corruption    the record is damaged, or in conflict with the state: it
  //                 adds a file twice, deletes an absent file, or breaks an
  //                 atomic group.
  //   NotSupported  this version does not know a tag, and RocksDB does not let
  //                 a reader ignore it; or the state needs too much memory.
  [[nodiscard]] rocksdb::Status Add(const rocksdb::Slice& record);

  // Returns the state after all complete records and groups.
  const ManifestState& state() const { return state_; }

  // Returns true inside an incomplete atomic group. The records of such a group
  // are not yet in state().
  bool in_group() const { return !group_.empty(); }

  // Returns how often a blob file was examined because an edit may have made it
  // unneeded. This is at most once for each item of an edit.
  uint64_t examined_blobs() const { return examined_blobs_; }

 private:
  rocksdb::Status Apply(VersionEdit* edit);
  rocksdb::Status ApplyFiles(VersionEdit* edit, ManifestFamily* family);
  rocksdb::Status ApplyBlobs(const VersionEdit& edit, ManifestFamily* family);
  rocksdb::Status ApplyWals(const VersionEdit& edit);
  void ApplyNumbers(const VersionEdit& edit, ManifestFamily* family);
  void DropFamily(uint32_t id);
  // Replaces a text of the state.
  void Set(const std::string& value, std::string* text);
  // `unlinked` has the blob files that lost their last link by the edit.
  void DropUnneededBlobs(const VersionEdit& edit,
                         const std::vector<uint64_t>& unlinked,
                         ManifestFamily* family);

  const Watch watch_;
  const uint64_t max_memory_bytes_;
  LogFollower log_;
  uint64_t end_ = 0;
  bool is_damaged_ = false;
  // True if a record has set the number with this name.
  bool has_log_number_ = false;
  bool has_next_file_ = false;
  bool has_last_sequence_ = false;
  ManifestState state_;
  uint64_t memory_bytes_ = 0;  // of state_ and blob_links_
  uint64_t group_bytes_ = 0;   // of group_
  std::vector<VersionEdit> group_;
  uint64_t group_size_ = 0;
  uint64_t examined_blobs_ = 0;
  // For each family and blob file: the number of tables whose oldest blob file
  // it is.
  std::map<uint32_t, std::map<uint64_t, uint64_t>> blob_links_;
};

}  // namespace sstferry
