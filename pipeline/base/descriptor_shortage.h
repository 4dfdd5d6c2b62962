// Recognizes failures that were caused by a lack of free file descriptors.
// These failures are temporary, but RocksDB reports them like any other failure
// of open().
#pragma once

#include <cstdint>

#include "rocksdb/status.h"

namespace sstferry {

// Returns how often this process could not open a file because it had no free
// descriptor. The number rises before the failed call returns.
uint64_t DescriptorShortages();

// Adds 1 to DescriptorShortages() if `error` is EMFILE or ENFILE.
void NoteDescriptorShortage(int error);
// Adds 1 to DescriptorShortages() if this process cannot open any file now.
// Callers use this function after a failure inside a library, which hides the
// errno.
void LookForDescriptorShortage();

// Returns kDeadPeer instead of kSourceError if a lack of descriptors may have
// caused the error, because a target retries after kDeadPeer. This is the case
// if DescriptorShortages() is now higher than `before`, or if hardly any
// descriptor is free now (a library may not have closed its files yet). Returns
// any other `status` unchanged.
[[nodiscard]] rocksdb::Status RetriedAfterShortage(
    const rocksdb::Status& status, uint64_t before);

}  // namespace sstferry
