// Copies a database by hard links, so that a swap can change the copy while an
// application continues to use the database.
//
// Tables and blob files are linked: RocksDB writes to one only before a
// MANIFEST names it. Everything else is copied: CURRENT, the MANIFEST, OPTIONS,
// IDENTITY, WALs up to where they were read, and the records of the last pull
// that a refresh needs. The point in time is taken as at a source
// (snapshot/snapshot_files.h).
//
// Nothing may be written, truncated or given another owner or mode through a
// link. So a file is copied, too, if the copy must not have its owner or mode.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "pipeline/disk/access.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

struct LinkedCopyOptions {
  std::string database_dir;
  std::string scratch_dir;  // must not exist; on the same file system
  std::string copy_dir;     // must exist and be empty
  Access file_access;       // final owner and mode of the copy's files
  std::function<bool()> cancelled;
};

// Counts of the files in a copy.
struct LinkedCopy {
  uint64_t files_linked = 0;
  uint64_t bytes_linked = 0;
  uint64_t files_copied = 0;  // tables and blob files, because of their access
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
