// A file system that does not sync a file again that it has seen synced.
//
// RocksDB syncs every file it ingests, since it cannot know who wrote it. A
// chunk is synced before it is recorded in the journal, so that second sync is
// one in five of all, and waits for the disk behind everything else.
#pragma once

#include <memory>

#include "rocksdb/file_system.h"

namespace sstferry {

// Sync and Fsync of a file do nothing when its bytes were synced through this
// file system and not written through it since; a hard link or a new name made
// through it counts as the same file. REQUIRES: nobody else writes those files,
// and a file that got a second name is written no more.
std::shared_ptr<rocksdb::FileSystem> MakeSyncedFilesFileSystem(
    std::shared_ptr<rocksdb::FileSystem> base);

}  // namespace sstferry
