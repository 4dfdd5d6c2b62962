// A file system whose reads and writes fail after a stop. Some RocksDB calls
// cannot be cancelled, for example the replay of a long WAL. With this file
// system, such a call ends at its next block.
//
// Reads also fail if a file has become shorter since it was opened, because
// RocksDB's readahead aborts the process on such a file. LockFile() does not
// lock, so use it only for databases that no other process opens.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "rocksdb/file_system.h"

namespace sstferry {

// Makes a file system on top of `base`. RocksDB's threads call `stopped`. After
// `stopped` has returned true, it must always return true. A call of RocksDB
// may return OK with a wrong result after a stop, so the caller must call
// `stopped` again before it uses the result. *read_bytes (may be null) counts
// the bytes that were read. It must outlive every file.
std::shared_ptr<rocksdb::FileSystem> MakeStoppableFileSystem(
    std::shared_ptr<rocksdb::FileSystem> base, std::function<bool()> stopped,
    std::atomic<uint64_t>* read_bytes = nullptr);

}  // namespace sstferry
