// A file system that puts off every sync: for --durability none, where the
// whole tree is synced once, before it gets its name.
#pragma once

#include <memory>

#include "rocksdb/file_system.h"

namespace sstferry {

// Sync, Fsync and RangeSync of files and directories do nothing; the caller
// must SyncTree() what was written before it promises anything.
std::shared_ptr<rocksdb::FileSystem> MakeDeferredSyncFileSystem(
    std::shared_ptr<rocksdb::FileSystem> base);

}  // namespace sstferry
