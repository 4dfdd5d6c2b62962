// A quick look at a data block: does it hold nothing but plain values at
// sequence 0?
#pragma once

#include "rocksdb/slice.h"

namespace sstferry {

// `contents`: of an uncompressed data block. True: it surely does. False: it
// does not, is malformed, or has a form this does not know (a hash index, keys
// that share part of their trailers): look with SstReader::ForEachEntry().
bool HoldsOnlyPlainValues(const rocksdb::Slice& contents);

}  // namespace sstferry
