// Tells a failure for want of a free descriptor, which passes, from others.
// RocksDB says in the text of its errors only what open() said.
#pragma once

#include <cstdint>

#include "rocksdb/status.h"

namespace sstferry {

// How often this process wanted to open something and had no descriptor left.
// Rises before the failure is returned.
uint64_t DescriptorShortages();

// Counts one if `error` is EMFILE or ENFILE.
void NoteDescriptorShortage(int error);
// Counts one if nothing can be opened now: for what fails in a library.
void LookForDescriptorShortage();

// Returns `status`; as kDeadPeer, after which a target comes again, if it is a
// kSourceError and there was a shortage since DescriptorShortages() was
// `before`, or hardly a descriptor is free now. The second catches a library's
// failure that gave back what it had opened.
[[nodiscard]] rocksdb::Status RetriedAfterShortage(
    const rocksdb::Status& status, uint64_t before);

}  // namespace sstferry
