// Fast check whether a data block holds only plain values at sequence 0.
#pragma once

#include "rocksdb/slice.h"

namespace sstferry {

// `contents` is an uncompressed data block. Returns true if it certainly holds
// only plain values. Returns false if it does not, is malformed, or has a
// format that this function does not know (a hash index, keys that share part
// of their trailers): use SstReader::ForEachEntry() then.
bool HoldsOnlyPlainValues(const rocksdb::Slice& contents);

}  // namespace sstferry
