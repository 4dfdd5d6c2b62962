// Describes a table file as text, for `sstferry inspect`.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "rocksdb/status.h"

#include "format/byte_source.h"

namespace sstferry {

// Appends (name, value) pairs in this order: sizes, footer, index, meta blocks
// with their positions, first and last key in hex, all properties. Values are
// printable. On failure *out holds what was read before it.
[[nodiscard]] rocksdb::Status DescribeSst(
    const ByteSource& source,
    std::vector<std::pair<std::string, std::string>>* out);

}  // namespace sstferry
