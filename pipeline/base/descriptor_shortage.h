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
// caused the error; a target retries after kDeadPeer. Returns any other
// `status` unchanged. Two signs show a lack: DescriptorShortages() is now
// higher than `before`, or hardly any descriptor is free now. The second sign
// is needed for a library that has not closed its files yet.
[[nodiscard]] rocksdb::Status RetriedAfterShortage(
    const rocksdb::Status& status, uint64_t before);

}  // namespace sstferry
