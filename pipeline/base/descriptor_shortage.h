// Distinguishes failures for lack of a free descriptor, which are temporary,
// from others. The errors of RocksDB contain only the text of the failed
// open().
#pragma once

#include <cstdint>

#include "rocksdb/status.h"

namespace sstferry {

// Returns the number of times that this process failed to open something
// because it had no free descriptor. The number rises before the failure is
// returned.
uint64_t DescriptorShortages();

// Counts a shortage if `error` is EMFILE or ENFILE.
void NoteDescriptorShortage(int error);
// Counts a shortage if no file can be opened now. For failures inside a
// library.
void LookForDescriptorShortage();

// Turns kSourceError into kDeadPeer, after which a target retries, if
// DescriptorShortages() has risen above `before`, or hardly any descriptor is
// free now. The second case detects failures of a library that still holds what
// it opened. Returns any other `status` unchanged.
[[nodiscard]] rocksdb::Status RetriedAfterShortage(
    const rocksdb::Status& status, uint64_t before);

}  // namespace sstferry
