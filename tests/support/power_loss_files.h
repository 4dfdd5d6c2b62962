// Makes the files and directories of a PowerLossFileSystem, which report each
// change to it. They borrow the file system.
#pragma once

#include <memory>

#include "tests/support/power_loss_file_system.h"

namespace sstferry {

std::unique_ptr<rocksdb::FSWritableFile> WatchFile(
    std::unique_ptr<rocksdb::FSWritableFile> file, DurableNames::Id id,
    PowerLossFileSystem* disk);
std::unique_ptr<rocksdb::FSRandomAccessFile> WatchRandomAccessFile(
    std::unique_ptr<rocksdb::FSRandomAccessFile> file, DurableNames::Id id,
    PowerLossFileSystem* disk);
std::unique_ptr<rocksdb::FSRandomRWFile> WatchRandomRWFile(
    std::unique_ptr<rocksdb::FSRandomRWFile> file, DurableNames::Id id,
    PowerLossFileSystem* disk);
std::unique_ptr<rocksdb::FSDirectory> WatchDirectory(
    DurableNames::Id id, PowerLossFileSystem* disk);

}  // namespace sstferry
