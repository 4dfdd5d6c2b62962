// A file system whose reads and writes fail after a stop. It ends RocksDB calls
// that cannot be cancelled (replaying a long WAL, skipping a long run of
// tombstones) at their next block. Reads also fail if a file was truncated
// after it was opened, because RocksDB's readahead aborts on such a file. Use
// it only for databases that nobody else opens: it locks no file.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "rocksdb/file_system.h"

namespace sstferry {

// Makes this file system. RocksDB's threads call `stopped`, which must stay
// true once it has returned true. Later results are invalid: a caller must call
// `stopped` again before it relies on an OK. *read_bytes (may be null) counts
// the bytes read; it must outlive every file.
std::shared_ptr<rocksdb::FileSystem> MakeStoppableFileSystem(
    std::shared_ptr<rocksdb::FileSystem> base, std::function<bool()> stopped,
    std::atomic<uint64_t>* read_bytes = nullptr);

}  // namespace sstferry
