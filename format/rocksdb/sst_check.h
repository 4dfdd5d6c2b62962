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
  // User keys of the first and the last entry (values and deletions).
  std::string smallest;
  std::string largest;
  // True: entries may be deletions, and the chunk may have range deletions, in
  // order, whose bounds are keys from `smallest` to `largest`. False: neither
  // is allowed.
  bool is_delta = false;
  uint64_t num_entries = 0;  // entries with values
  // Sum of the user key sizes of these entries, without trailers. Unset: not
  // compared.
  std::optional<uint64_t> key_bytes;
  // Also accepts wide-column entities.
  bool allow_entities = false;
  // Accepts blocks with layouts that only newer RocksDB can read: values
  // separate from keys, uniform keys.
  bool allow_marked_blocks = false;
  // Empty / 0: not compared.
  std::string comparator;
  uint32_t format_version = 0;
  // Decodes every data block instead of only the first and the last. This also
  // proves order, types and the entry count.
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
  // These three identify the file; RocksDB derives its unique id from them.
  std::string db_id;
  std::string db_session_id;
  uint64_t original_file_number = 0;
};

// Reads the whole file. OK means:
// - the checksum of every block matches (also of partitions of index and
//   filters), and data blocks follow each other from offset 0 without gaps
//   except zero padding;
// - footer, metaindex, properties, the whole index, and the first and the last
//   data block are valid; their keys are ordered, and every internal key has a
//   trailer with sequence 0 and an allowed type;
// - range deletions exist only if they are allowed;
// - all expected values match, and the file has the properties of one that
//   SstFileWriter made (external version 2, global sequence number 0).
// Otherwise returns Corruption. NotSupported: see SstReader::Open().
// REQUIRES: expected.order is set. facts may be null.
[[nodiscard]] rocksdb::Status CheckChunk(const ByteSource& source,
                                         const ChunkExpectation& expected,
                                         ChunkFacts* facts);

}  // namespace sstferry
