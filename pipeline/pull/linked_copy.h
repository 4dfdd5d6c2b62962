// Copies a database by hard links, so that a swap can change the copy while
// whoever has the database open goes on with it.
//
// Tables and blob files are linked: RocksDB writes one only before a MANIFEST
// names it. All else is copied: CURRENT, the MANIFEST, OPTIONS, IDENTITY, WALs
// up to where they were read, and what the last pull left for a refresh. The
// point in time is a source's (snapshot/snapshot_files.h).
//
// Nothing may be written, truncated or given another owner or mode through a
// link: a file whose owner or mode the copy must not have is copied, too.
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
  std::string scratch_dir;  // does not exist; on the same file system
  std::string copy_dir;     // exists, and is empty
  Access file_access;       // of the copy's files, in the end
  std::function<bool()> cancelled;
};

struct LinkedCopy {
  uint64_t files_linked = 0;
  uint64_t bytes_linked = 0;
  uint64_t files_copied = 0;  // tables and blob files, for their access
};

// Makes the copy; it is durable when this returns OK. The database is only
// read.
//   errors of Snapshot::Create(); kNoSpace
[[nodiscard]] rocksdb::Status MakeLinkedCopy(
    const LinkedCopyOptions& options, rocksdb::FileSystem* file_system,
    LinkedCopy* copy);

// Returns what is linked in a copy that an earlier run made: the files that have
// the same name in both directories. `files_copied` is not known.
LinkedCopy CountLinks(const std::string& database_dir,
                      const std::string& copy_dir);

}  // namespace sstferry
