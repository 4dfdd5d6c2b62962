// Copies a database by hard links, so that a swap can change the copy while an
// application continues to use the database.
//
// Links tables and blob files, because RocksDB does not change them once a
// MANIFEST lists them. Copies all other files: CURRENT, the MANIFEST, OPTIONS,
// IDENTITY, and WALs up to where they were read. Finds a consistent set of
// files in the same way as a source (snapshot/snapshot_files.h).
//
// A standby's own follower knows the consistent set, and that only the newest
// WAL changes. If it makes the copy, no file is read to find the set, and the
// other WALs are linked, too.
//
// Nothing may be written, truncated or given another owner or mode through a
// link. So a file is copied if the copy needs another owner or mode.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "pipeline/disk/access.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// Time after which a copy or a snapshot of the target's own database fails if
// the database changes in every round.
inline constexpr std::chrono::milliseconds kOwnerPause{10'000};

// Point in time of a standby. Its files stay in place and change only by
// records that are appended after this point.
struct StandbyEnd {
  std::string manifest;       // its name
  uint64_t manifest_bytes = 0;
  uint64_t wal_number = 0;    // the newest WAL with a record; 0: no WAL
  uint64_t wal_bytes = 0;
};

struct LinkedCopyOptions {
  std::string database_dir;
  std::string scratch_dir;  // must not exist; on the same file system
  std::string copy_dir;     // must exist and be empty
  Access file_access;       // final owner and mode of the copy's files
  std::function<bool()> cancelled;
  // Set by a standby's follower, for a copy that is only read. Then there is no
  // scratch_dir, and linked files keep the owner and mode that they have.
  std::optional<StandbyEnd> end;
};

// Counts of the files in a copy.
struct LinkedCopy {
  uint64_t files_linked = 0;
  uint64_t bytes_linked = 0;
  uint64_t files_copied = 0;  // data files, for their owner or mode
};

// Makes the copy, which is durable when this returns OK. The database is only
// read. Errors are those of Snapshot::Create(), and kNoSpace.
[[nodiscard]] rocksdb::Status MakeLinkedCopy(
    const LinkedCopyOptions& options, rocksdb::FileSystem* file_system,
    LinkedCopy* copy);

// Counts the links in a copy that an earlier run made: files that have the same
// name in both directories. Does not set `files_copied`.
LinkedCopy CountLinks(const std::string& database_dir,
                      const std::string& copy_dir);

}  // namespace sstferry
