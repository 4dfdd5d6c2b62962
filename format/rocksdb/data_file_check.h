// Checks a table or blob file of a clone with the checksums that RocksDB wrote.
#pragma once

#include <vector>

#include "format/byte_source.h"
#include "format/clone_file.h"
#include "format/rocksdb/sst_file_check.h"
#include "rocksdb/status.h"

namespace sstferry {

// Reads a whole table or blob file, except the blocks in `checked` (see
// CheckSstFile()). Returns Corruption if a checksum is wrong, or errors of the
// source's Read(). Sets *facts for a table. For a blob file, *facts has default
// values. REQUIRES: `kind` is a table or a blob file.
[[nodiscard]] rocksdb::Status CheckDataFile(const ByteSource& source,
                                            CloneFileKind kind,
                                            std::vector<ByteSpan> checked,
                                            SstFileFacts* facts);

}  // namespace sstferry
