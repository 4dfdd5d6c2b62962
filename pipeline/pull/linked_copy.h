// Copies a database with hard links. A swap can then change the copy while an
// application continues to use the database.
//
// Tables and blob files are linked, because RocksDB does not change them after
// a MANIFEST lists them. CURRENT, the MANIFEST, OPTIONS, IDENTITY and WALs are
// copied; a WAL is copied up to the offset to which it was read. A consistent
// set of files is found in the same way as at a source
// (snapshot/snapshot_files.h).
//
// The follower of a standby knows the consistent set of its own files, and
// knows that only the newest WAL changes. If the follower makes the copy, no
// file is read to find the set. Then the other WALs are linked, too.
//
// No code may write to a file, truncate it or change its owner or mode through
// a link. So a file is copied if the copy needs another owner or mode.
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

// Time after which a copy or a snapshot of a database on this machine fails if
// the database changes during every try to find a consistent set of files.
inline constexpr std::chrono::milliseconds kOwnerPause{10'000};

// A point in time of a standby. The files of the standby stay in place, and
// change only by records that are appended after this point.
struct StandbyEnd {
  std::string manifest;       // name of the file
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
  // Set by a standby's follower for a copy that is only read. The copy then
  // needs no scratch_dir, and linked files keep their owner and mode.
  std::optional<StandbyEnd> end;
};

// Counts of the files in a copy.
struct LinkedCopy {
  uint64_t files_linked = 0;
  uint64_t bytes_linked = 0;
  uint64_t files_copied = 0;  // data files that need another owner or mode
};

// Makes the copy. Only reads the database. After OK, the copy is durable.
// Returns the errors of Snapshot::Create(), and kNoSpace.
[[nodiscard]] rocksdb::Status MakeLinkedCopy(
    const LinkedCopyOptions& options, rocksdb::FileSystem* file_system,
    LinkedCopy* copy);

// Counts the links in a copy that an earlier run made, that is, the files that
// are the same under one name in both directories. Does not set `files_copied`.
LinkedCopy CountLinks(const std::string& database_dir,
                      const std::string& copy_dir);

}  // namespace sstferry
