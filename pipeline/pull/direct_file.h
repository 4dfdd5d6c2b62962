// Writes without the page cache, for bytes that will not be read soon.
#pragma once

#include <memory>

#include "rocksdb/file_system.h"

namespace sstferry {

// Returns a file system whose NewRandomRWFile() opens an existing file for
// direct writes only, if FileOptions::use_direct_writes is set and the disk's
// file system supports it; otherwise `base` opens the file. (RocksDB's own
// direct writers cannot be used: they truncate the file or append to it.)
// Memory, offsets and sizes of direct writes must be multiples of 4096.
std::shared_ptr<rocksdb::FileSystem> MakeDirectFileSystem(
    std::shared_ptr<rocksdb::FileSystem> base);

}  // namespace sstferry
