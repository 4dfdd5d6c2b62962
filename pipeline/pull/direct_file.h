// Writes past the page cache, for bytes that nobody reads soon.
#pragma once

#include <memory>

#include "rocksdb/file_system.h"

namespace sstferry {

// Returns a file system whose NewRandomRWFile() opens a file that exists for
// direct writes only, where FileOptions::use_direct_writes asks for it and the
// disk's file system can do it; else `base` opens it. RocksDB's own files for
// direct writes truncate what they open, or append to it.
// Memory, offsets and sizes of direct writes are multiples of 4096.
std::shared_ptr<rocksdb::FileSystem> MakeDirectFileSystem(
    std::shared_ptr<rocksdb::FileSystem> base);

}  // namespace sstferry
