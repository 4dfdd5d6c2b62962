// A table file in words, for `sstferry inspect`.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "rocksdb/status.h"

#include "format/byte_source.h"

namespace sstferry {

// Appends (name, value) pairs in reading order: sizes, footer, index, meta
// blocks with their places, bound keys in hex, every property. Values are
// printable. On failure *out holds what could be read before it.
[[nodiscard]] rocksdb::Status DescribeSst(
    const ByteSource& source,
    std::vector<std::pair<std::string, std::string>>* out);

}  // namespace sstferry
