// A file system whose reads and writes fail once somebody says stop, so that
// work inside RocksDB which cannot be interrupted (replaying a long WAL,
// skipping a long run of tombstones) ends at its next block. A file that is
// found shorter than it was opened fails too: RocksDB's readahead aborts on it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "rocksdb/file_system.h"

namespace sstferry {

// `stopped` is called from RocksDB's threads and must stay true once it was.
// Every result obtained after it turned true is worthless: whoever uses this
// must ask `stopped` again before believing an OK. *read_bytes (may be null)
// counts what is read; it must outlive every file.
std::shared_ptr<rocksdb::FileSystem> MakeStoppableFileSystem(
    std::shared_ptr<rocksdb::FileSystem> base, std::function<bool()> stopped,
    std::atomic<uint64_t>* read_bytes = nullptr);

}  // namespace sstferry
