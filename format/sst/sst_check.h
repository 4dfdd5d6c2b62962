// Is a received chunk the table file that was promised, and one that RocksDB
// can open without aborting the process? Decided from bytes alone, before
// RocksDB sees the file.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

#include "format/byte_source.h"
#include "format/sst/sst_footer.h"
#include "format/sst/sst_properties.h"

namespace sstferry {

// <0, 0, >0 for user keys, in the column family's order.
using SstKeyOrder =
    std::function<int(const rocksdb::Slice& a, const rocksdb::Slice& b)>;

struct ChunkExpectation {
  // User keys of the first and the last entry, values and deletions.
  std::string smallest;
  std::string largest;
  // A range deletion over [smallest, largest), and nothing of the kind else;
  // all entries but the deletion of `largest` lie in there.
  bool clears = false;
  // The last entry is a deletion of `largest`. No other entry is one, and
  // merge operands, which a resolved iterator does not show, do not occur.
  bool deletes_last = false;
  uint64_t num_entries = 0;  // that have values
  // Sums over these, user keys without trailers. Unset: not compared.
  std::optional<uint64_t> key_bytes;
  std::optional<uint64_t> value_bytes;
  // Accept wide-column entities besides plain values.
  bool allow_entities = false;
  // Accept blocks marked in ways that only newer RocksDB reads: values apart
  // from keys, uniform keys.
  bool allow_marked_blocks = false;
  // Empty / 0: not compared.
  std::string comparator;
  uint32_t format_version = 0;
  // Decode every data block instead of the first and the last: proves order,
  // types and the entry count, too.
  bool all_blocks = false;
  SstKeyOrder order;
};

// What the journal and the logs want to know about an accepted chunk.
struct ChunkFacts {
  uint64_t file_bytes = 0;
  uint64_t data_bytes = 0;
  uint64_t data_blocks = 0;
  uint64_t num_entries = 0;
  uint32_t format_version = 0;
  SstChecksum checksum = SstChecksum::kNone;
  SstIndexType index_type = SstIndexType::kBinarySearch;
  // Together they identify the file; RocksDB makes its unique id of them.
  std::string db_id;
  std::string db_session_id;
  uint64_t original_file_number = 0;
};

// Reads the whole file. OK means: every block has its checksum (partitions of
// index and filters, too); footer, metaindex, properties, the whole index, and
// the first and last data block are sound; keys of those blocks
// and of the index are ordered, every internal key has its trailer with
// sequence 0 and an allowed type; the block of range deletions is decoded and
// holds the one expected; data blocks follow each other without gaps
// (but zero padding) from offset 0; and all expected values are met. The file
// is one that SstFileWriter made (version 2, global sequence number 0).
// Corruption: anything else. NotSupported: see SstReader::Open().
// REQUIRES: expected.order is set. facts may be null.
[[nodiscard]] rocksdb::Status CheckChunk(const ByteSource& source,
                                         const ChunkExpectation& expected,
                                         ChunkFacts* facts);

}  // namespace sstferry
