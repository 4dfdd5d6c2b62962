// Checks a whole table file of a clone by its own checksums. Unlike
// sst_check.h it asks nothing of the entries: the file is RocksDB's own.
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
  // Bytes of the file are covered by no checksum: another kind of table, blocks
  // without checksums, or bytes that no known block covers.
  bool unchecked = false;
};

// Reads the whole file but for data blocks that lie in one of the `checked`
// spans: SstPartCheck has seen those. OK means that every checksum in it
// matches, as far as `facts` do not tell otherwise, and that footer, metaindex,
// properties and index are sound. Corruption: they are not; errors of the
// source's Read().
// Memory: an index block and a partition of it, and 512 KiB.
[[nodiscard]] rocksdb::Status CheckSstFile(const ByteSource& source,
                                           std::vector<ByteSpan> checked,
                                           SstFileFacts* facts);

}  // namespace sstferry
