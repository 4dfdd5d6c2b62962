// A file system that skips the sync of a file whose bytes are already synced.
//
// RocksDB syncs every file that it ingests. The journal records a chunk only
// after the chunk was synced, so RocksDB need not sync it again. Without this
// class, every fifth sync would be such a repetition. Each would also wait for
// all other writes to the disk.
#pragma once

#include <memory>

#include "rocksdb/file_system.h"

namespace sstferry {

// Returns a file system that remembers which files it has synced. Its Sync and
// Fsync do nothing for a file that was not written since its last sync. It
// tracks hard links and renames. REQUIRES: these files are written only through
// this file system, and a file with a second hard link is not written again.
std::shared_ptr<rocksdb::FileSystem> MakeSyncedFilesFileSystem(
    std::shared_ptr<rocksdb::FileSystem> base);

}  // namespace sstferry
