// Distinguishes temporary failures, caused by a lack of free file descriptors,
// from other failures. RocksDB's errors contain only the text of the failed
// open().
#pragma once

#include <cstdint>

#include "rocksdb/status.h"

namespace sstferry {

// Returns how often this process failed to open something because it had no
// free descriptor. The count rises before the failed call returns.
uint64_t DescriptorShortages();

// Counts a shortage if `error` is EMFILE or ENFILE.
void NoteDescriptorShortage(int error);
// Counts a shortage if no file can be opened now. Called after failures inside
// a library.
void LookForDescriptorShortage();

// Turns kSourceError into kDeadPeer, after which a target retries, if
// DescriptorShortages() has risen above `before`, or if hardly any descriptor
// is free now. The second condition detects failures of a library that has not
// yet closed its files. Returns any other `status` unchanged.
[[nodiscard]] rocksdb::Status RetriedAfterShortage(
    const rocksdb::Status& status, uint64_t before);

}  // namespace sstferry
