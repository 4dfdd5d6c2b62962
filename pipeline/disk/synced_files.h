// A file system that skips the sync of a file whose bytes are already synced.
//
// RocksDB syncs every file that it ingests. A chunk is already synced before
// the journal records it, so RocksDB's sync is unnecessary. It would be every
// fifth sync, and would wait for all other writes to the disk.
#pragma once

#include <memory>

#include "rocksdb/file_system.h"

namespace sstferry {

// Returns a file system whose Sync and Fsync do nothing for a file that was
// synced through it and not written through it since. Hard links and renames
// made through it are tracked. REQUIRES: nothing else writes these files, and a
// hard-linked file is not written again.
std::shared_ptr<rocksdb::FileSystem> MakeSyncedFilesFileSystem(
    std::shared_ptr<rocksdb::FileSystem> base);

}  // namespace sstferry
