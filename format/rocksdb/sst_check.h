// Checks a received chunk before RocksDB opens the file, using only the chunk's
// bytes. The chunk must be the table file that the source announced, and
// RocksDB must be able to open it without aborting the process.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

#include "format/byte_source.h"
#include "format/rocksdb/sst_footer.h"
#include "format/rocksdb/sst_properties.h"

namespace sstferry {

// Compares user keys in the column family's order; returns <0, 0 or >0.
using SstKeyOrder =
    std::function<int(const rocksdb::Slice& a, const rocksdb::Slice& b)>;

struct ChunkExpectation {
  // User keys of the first and the last entry, which may be deletions.
  std::string smallest;
  std::string largest;
  // True if the chunk is a delta. Then entries may be deletions, and range
  // deletions are allowed, in order, with bounds that are keys from `smallest`
  // to `largest`. If false, the chunk may have neither.
  bool is_delta = false;
  uint64_t num_entries = 0;  // entries with values
  // Sum of the sizes of the user keys of entries with values; unset: not
  // compared.
  std::optional<uint64_t> key_bytes;
  // True if entries may be wide-column entities.
  bool allow_entities = false;
  // True if blocks may have layouts that only newer RocksDB can read: values
  // separate from keys, and uniform keys.
  bool allow_marked_blocks = false;
  // Expected values; an empty text or 0 is not compared.
  std::string comparator;
  uint32_t format_version = 0;
  // True: decodes every data block, not only the first and the last. This also
  // proves the order of all keys, the types, and the entry count.
  bool all_blocks = false;
  SstKeyOrder order;
};

// Facts about an accepted chunk, for the journal and the logs.
struct ChunkFacts {
  uint64_t file_bytes = 0;
  uint64_t data_bytes = 0;
  uint64_t data_blocks = 0;
  uint64_t num_entries = 0;
  uint64_t deletions = 0;
  uint32_t format_version = 0;
  SstChecksum checksum = SstChecksum::kNone;
  SstIndexType index_type = SstIndexType::kBinarySearch;
  // These three members identify the file. RocksDB derives the file's unique id
  // from them.
  std::string db_id;
  std::string db_session_id;
  uint64_t original_file_number = 0;
};

// Reads the whole file and compares it with `expected`. OK means:
// - the checksum of every block matches (also of the partitions of the index
//   and of filters), and data blocks follow each other from offset 0, with
//   nothing but zero padding between them;
// - footer, metaindex, properties, the whole index, and the first and the last
//   data block are valid; their keys are ordered, and every internal key has a
//   trailer with sequence 0 and an allowed type;
// - range deletions exist only if they are allowed;
// - all expected values match, and the file has the properties of a file that
//   SstFileWriter made (external version 2, global sequence number 0).
// Otherwise returns Corruption. NotSupported: see SstReader::Open(). REQUIRES:
// expected.order is set. `facts` may be null.
[[nodiscard]] rocksdb::Status CheckChunk(const ByteSource& source,
                                         const ChunkExpectation& expected,
                                         ChunkFacts* facts);

}  // namespace sstferry
