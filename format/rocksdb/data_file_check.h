// Checks a table or blob file of a clone with the checksums that RocksDB wrote.
#pragma once

#include <vector>

#include "format/byte_source.h"
#include "format/clone_file.h"
#include "format/rocksdb/sst_file_check.h"
#include "rocksdb/status.h"

namespace sstferry {

// Reads the whole file except the blocks that were `checked` (CheckSstFile()).
// Sets *facts for a table; for a blob file *facts has default values.
// Corruption: a checksum is wrong; errors of the source's Read(). REQUIRES: a
// table or a blob file.
[[nodiscard]] rocksdb::Status CheckDataFile(const ByteSource& source,
                                            CloneFileKind kind,
                                            std::vector<ByteSpan> checked,
                                            SstFileFacts* facts);

}  // namespace sstferry
