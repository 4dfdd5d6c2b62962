// A file system that skips every sync, for --durability none: the pull syncs
// the whole tree once, before the database gets its name.
#pragma once

#include <memory>

#include "rocksdb/file_system.h"

namespace sstferry {

// Returns a file system whose Sync, Fsync and RangeSync of files and
// directories do nothing. The caller must SyncTree() what it wrote before it
// reports the data as durable.
std::shared_ptr<rocksdb::FileSystem> MakeDeferredSyncFileSystem(
    std::shared_ptr<rocksdb::FileSystem> base);

}  // namespace sstferry
