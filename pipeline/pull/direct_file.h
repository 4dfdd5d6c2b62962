// Writes without the page cache, for bytes that will not be read soon.
#pragma once

#include <memory>

#include "rocksdb/file_system.h"

namespace sstferry {

// Returns a file system that can write existing files directly, without the
// page cache. Its NewRandomRWFile() does so if FileOptions::use_direct_writes
// is set and the disk's file system supports direct writes; otherwise `base`
// opens the file. A directly opened file can only be written. The memory,
// offsets and sizes of direct writes must be multiples of 4096. (RocksDB's own
// direct writers truncate the file or append to it.)
std::shared_ptr<rocksdb::FileSystem> MakeDirectFileSystem(
    std::shared_ptr<rocksdb::FileSystem> base);

}  // namespace sstferry
