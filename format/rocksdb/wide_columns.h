// Decodes the columns of a wide-column entity that is stored in a table.
#pragma once

#include <string>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Encodes the columns of a stored entity as the content digest requires
// (FORMAT.md): u32 name length, u32 value length, name and value of each
// column.
//   Corruption    the entity is damaged
//   NotSupported  the entity has another version
[[nodiscard]] rocksdb::Status EncodeColumnsForDigest(
    const rocksdb::Slice& entity, std::string* encoded);

}  // namespace sstferry
