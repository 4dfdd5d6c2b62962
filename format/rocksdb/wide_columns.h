// The columns of a wide-column entity as a table stores them.
#pragma once

#include <string>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Sets *encoded to the columns of a stored entity in the form that digests take
// (FORMAT.md, the content digest): u32 name length, u32 value length, name and
// value of each.
//   Corruption    the entity is damaged
//   NotSupported  another version stored it
[[nodiscard]] rocksdb::Status EncodeColumnsForDigest(
    const rocksdb::Slice& entity, std::string* encoded);

}  // namespace sstferry
