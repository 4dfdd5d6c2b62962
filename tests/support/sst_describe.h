// Describes a table file as text, so that tests can check what SstReader reads.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "rocksdb/status.h"

#include "format/byte_source.h"
#include "format/rocksdb/sst_reader.h"

namespace sstferry {

// Appends (name, value) pairs in this order: sizes, footer, index, meta blocks
// with their positions, first and last key in hex, all properties. Values are
// printable. On failure, *out has what was read until then.
[[nodiscard]] rocksdb::Status DescribeSst(
    const ByteSource& source,
    std::vector<std::pair<std::string, std::string>>* out);

// Reads the internal keys of the file's first and last entries; leaves both
// empty if it has none.
[[nodiscard]] rocksdb::Status ReadBoundKeys(const SstReader& reader,
                                            std::string* first,
                                            std::string* last);

}  // namespace sstferry
