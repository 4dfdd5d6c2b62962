// Makes RocksDB report NoSpace for every full disk. By itself, RocksDB
// recognizes only ENOSPC. It treats an exceeded quota (EDQUOT) or file size
// limit (EFBIG, as after ulimit -f) like any other disk failure.
#pragma once

#include <memory>
#include <string>

#include "rocksdb/file_system.h"

namespace sstferry {

// Returns true for an errno that means a lack of room: ENOSPC (a lack of bytes
// or of inodes), EDQUOT or EFBIG.
bool IsOutOfRoom(int error);

// Returns an explanation of "No space left" for a file system that has free
// bytes, but no free inode. `path` is a file in this file system, and need not
// exist. Returns an empty string for any other file system.
std::string InodeNote(const std::string& path);

// Returns a file system that behaves like `base`, except that writes beyond a
// quota or a size limit fail with NoSpace.
std::shared_ptr<rocksdb::FileSystem> MakeFullDiskFileSystem(
    std::shared_ptr<rocksdb::FileSystem> base);

}  // namespace sstferry
