// Carrying a table file: its end is rewritten so that IngestExternalFile takes
// the file, all before it stays byte for byte.
// Normative text: format/SST_LAYOUT.md, "Tail"; keep both in step.
//
//   source file   [body][properties][metaindex][footer]
//   carried file  [body][properties'][metaindex'][footer']
//
// Properties gain the external version and a global sequence number of 0 and
// lose the column family they were written for; all others are copied. So the
// file keeps its database id, session id and original file number, and with
// them its block-cache keys: right, as every cached block lies in the body.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

#include "format/sst/sst_block.h"
#include "format/sst/sst_footer.h"
#include "format/sst/sst_properties.h"
#include "format/sst/sst_reader.h"

namespace sstferry {

// What makes a carried file replace an interval where data lies already: a
// block with one range deletion, which hides none of the file's own entries.
//
//   carried file  [body][range deletion][properties'][metaindex'][footer']
//
// Range deletions are cached, so the file needs an identity of its own.
struct SstStamp {
  std::string begin;       // not above the file's first key
  std::string end;         // not cleared any more; above begin
  std::string session_id;  // 20 base-36 characters that no other file has
  friend bool operator==(const SstStamp&, const SstStamp&) = default;
};

struct SstTail {
  // The file's first bytes that stay: up to the properties block.
  uint64_t body_bytes = 0;
  // What follows: properties block, metaindex block, footer.
  std::string bytes;
  // As the source file had them.
  SstProperties properties;
  SstChecksum checksum = SstChecksum::kNone;
  uint32_t format_version = 0;
};

// Decodes its own output before it returns OK.
// NotSupported: this file cannot be carried and must be rebuilt; the message
// is a short reason for `plan` (e.g. "holds an unknown property rocksdb.foo").
// Corruption: the file is damaged.
// REQUIRES: reader.Open() returned OK.
[[nodiscard]] rocksdb::Status RewriteSstTail(const SstReader& reader,
                                             SstTail* tail);
// The same with a stamp (null: without).
[[nodiscard]] rocksdb::Status RewriteSstTail(const SstReader& reader,
                                             const SstStamp* stamp,
                                             SstTail* tail);

using SstBlockVisitor =
    std::function<rocksdb::Status(const SstBlockHandle& handle)>;

// Visits the blocks that the block at `top` tells of: partitions of the index
// or of a filter. Stops at the visitor's first failure and returns it.
[[nodiscard]] rocksdb::Status ForEachSstPartition(
    const SstReader& reader, const SstBlockHandle& top,
    const SstBlockVisitor& visitor);

// Visits every block that lies in [0, body_bytes) in file order: data blocks,
// index partitions, filter blocks and partitions, dictionaries. Between two
// blocks only zero padding (alignment; bounded) is allowed, which the caller
// checks when it has the bytes. So whoever verifies every visited block and
// the padding has verified every byte. Stops at the visitor's first failure
// and returns it.
// What lies there is checked with VerifySstBlockBytes() of sst_block.h.
// NotSupported: bytes that no known block covers, or blocks in an order that
// is not known. Corruption: data blocks overlap, or a block that tells of
// others is damaged.
// Memory: one index block and one partition of it.
[[nodiscard]] rocksdb::Status ForEachBodyBlock(const SstReader& reader,
                                               const SstTail& tail,
                                               const SstBlockVisitor& visitor);

}  // namespace sstferry
