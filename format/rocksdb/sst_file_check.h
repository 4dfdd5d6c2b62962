// Checks a complete table file of a clone by its own checksums. Unlike
// sst_check.h, does not check the entries, because RocksDB wrote the file.
#pragma once

#include <cstdint>
#include <vector>

#include "format/byte_source.h"
#include "rocksdb/status.h"

namespace sstferry {

// Bytes [begin, end) of a file.
struct ByteSpan {
  uint64_t begin = 0;
  uint64_t end = 0;
  friend bool operator==(const ByteSpan&, const ByteSpan&) = default;
};

struct SstFileFacts {
  uint32_t format_version = 0;  // 0: not a block-based table
  // True if no checksum covers some of the bytes. The file is another kind of
  // table, has blocks without checksums, or has bytes that are in no known
  // block.
  bool unchecked = false;
};

// Reads a whole table file, except data blocks inside one of the `checked`
// spans, which SstPartCheck has verified. OK means that every checksum matches
// (see `facts->unchecked`), and that footer, metaindex, properties and index
// are valid. Otherwise returns Corruption, or errors of the source's Read().
// Memory: an index block, one index partition, and 512 KiB.
[[nodiscard]] rocksdb::Status CheckSstFile(const ByteSource& source,
                                           std::vector<ByteSpan> checked,
                                           SstFileFacts* facts);

}  // namespace sstferry
