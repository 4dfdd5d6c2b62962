// Carries a table file: rewrites its tail so that IngestExternalFile accepts
// the file, and leaves all bytes before the tail unchanged. Normative text:
// format/SST_LAYOUT.md, "Tail"; keep both in step.
//
//   source file   [body][properties][metaindex][footer]
//   carried file  [body][properties'][metaindex'][footer']
//
// The rewritten properties have an external version and a global sequence
// number of 0 and no column family; all others are copied. So the file keeps
// its database id, session id and original file number, and with them its
// block-cache keys: these stay valid because every cached block is in the body.
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

// Makes a carried file replace an interval of a database with data: adds a
// block with one range deletion, which hides none of the file's own entries.
//
//   carried file  [body][range deletion][properties'][metaindex'][footer']
//
// RocksDB caches range deletions, so the file needs an identity of its own.
struct SstStamp {
  std::string begin;       // not above the file's first key
  std::string end;         // exclusive; above begin
  std::string session_id;  // 20 base-36 characters that no other file has
  friend bool operator==(const SstStamp&, const SstStamp&) = default;
};

struct SstTail {
  // Number of unchanged bytes at the start of the file, up to the properties
  // block.
  uint64_t body_bytes = 0;
  // The bytes that follow: properties block, metaindex block, footer.
  std::string bytes;
  // The properties of the source file.
  SstProperties properties;
  SstChecksum checksum = SstChecksum::kNone;
  uint32_t format_version = 0;
};

// Makes the new tail of a file; decodes its own output before it returns OK.
// NotSupported: this file cannot be carried and must be rebuilt; the message
// is a short reason for `plan` (e.g. "holds an unknown property rocksdb.foo").
// Corruption: the file is damaged.
// REQUIRES: reader.Open() returned OK.
[[nodiscard]] rocksdb::Status RewriteSstTail(const SstReader& reader,
                                             SstTail* tail);
// The same with a stamp (null: no stamp).
[[nodiscard]] rocksdb::Status RewriteSstTail(const SstReader& reader,
                                             const SstStamp* stamp,
                                             SstTail* tail);

using SstBlockVisitor =
    std::function<rocksdb::Status(const SstBlockHandle& handle)>;

// Visits the blocks that the block at `top` lists: partitions of the index or
// of a filter. Stops at the visitor's first failure and returns it.
[[nodiscard]] rocksdb::Status ForEachSstPartition(
    const SstReader& reader, const SstBlockHandle& top,
    const SstBlockVisitor& visitor);

// Visits every block in [0, body_bytes) in file order: data blocks, index
// partitions, filter blocks and partitions, dictionaries. Only zero padding
// (alignment; bounded) is allowed between two blocks; the caller checks the
// padding when it has the bytes. A caller that verifies every visited block
// (VerifySstBlockBytes() of sst_block.h) and the padding has verified every
// byte. Stops at the visitor's first failure and returns it.
// NotSupported: bytes that no known block covers, or blocks in an order that
// is not known. Corruption: data blocks overlap, or a block that lists others
// is damaged. Memory: one index block and one partition of it.
[[nodiscard]] rocksdb::Status ForEachBodyBlock(const SstReader& reader,
                                               const SstTail& tail,
                                               const SstBlockVisitor& visitor);

}  // namespace sstferry
