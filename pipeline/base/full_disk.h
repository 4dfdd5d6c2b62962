// Tells RocksDB that a disk has no room. RocksDB has a code for ENOSPC alone: a
// quota (EDQUOT) and a limit for the size of a file (EFBIG: ulimit -f, or that
// of the file system) end as any other failure of a disk.
#pragma once

#include <memory>

#include "rocksdb/file_system.h"

namespace sstferry {

// Returns true for an errno that says so: ENOSPC, of inodes too, EDQUOT, EFBIG.
bool IsOutOfRoom(int error);

// Returns a file system in which what is written beyond a quota or a limit
// fails with NoSpace, and all else is as in `base`.
std::shared_ptr<rocksdb::FileSystem> MakeFullDiskFileSystem(
    std::shared_ptr<rocksdb::FileSystem> base);

}  // namespace sstferry
