// Reports a full disk to RocksDB. RocksDB recognizes only ENOSPC; without this
// file, an exceeded quota (EDQUOT) or file size limit (EFBIG: ulimit -f, or the
// file system's limit) looks like any other disk failure.
#pragma once

#include <memory>
#include <string>

#include "rocksdb/file_system.h"

namespace sstferry {

// Returns true for an errno that means lack of room: ENOSPC (also of inodes),
// EDQUOT, EFBIG.
bool IsOutOfRoom(int error);

// Returns a sentence if the file system of `path`, or of the directory that
// would contain it, has free bytes but no free inode, because "No space left"
// is then surprising. Otherwise returns an empty string.
std::string InodeNote(const std::string& path);

// Returns a file system that behaves like `base`, except that writes beyond a
// quota or a size limit fail with NoSpace.
std::shared_ptr<rocksdb::FileSystem> MakeFullDiskFileSystem(
    std::shared_ptr<rocksdb::FileSystem> base);

}  // namespace sstferry
