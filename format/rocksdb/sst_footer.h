// Reads the footer of a RocksDB block-based table file: the position of the
// metaindex and the type of the blocks' checksums. Normative text with the byte
// tables of all versions: format/SST_LAYOUT.md, "Footer"; keep both in step.
//
// A footer is the file's last 53 bytes. Integers are little-endian; a handle is
// two varint64: offset, size (the size without the block's 5-byte trailer).
//
//   offset  size  field
//   0       1     checksum type       SstChecksum
//   1       40    versions 1-5: metaindex handle, index handle, zeros
//                 versions 6-7:
//   1       4       extended magic    3e 00 7a 00
//   5       4       footer checksum   of the 53 bytes with this field zero,
//                                     plus the context modifier for the
//                                     footer's file offset
//   9       4       base context checksum, not 0
//   13      4       metaindex size    the block ends 5 bytes before the footer
//   17      24      zeros
//   41      4     format version
//   45      8     magic               f7 cf f4 85 b7 41 e2 88
//
// Stricter than RocksDB: the padding must be zero in every version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

#include "format/byte_source.h"

namespace sstferry {

inline constexpr size_t kSstFooterBytes = 53;
inline constexpr size_t kSstBlockTrailerBytes = 5;
inline constexpr uint32_t kMaxSstFormatVersion = 7;

// Position of a block in its file; the block's trailer follows it directly.
struct SstBlockHandle {
  uint64_t offset = 0;
  uint64_t size = 0;

  // Returns the end of the block's trailer. REQUIRES: the handle was checked
  // against the file's size.
  uint64_t end() const { return offset + size + kSstBlockTrailerBytes; }
  bool operator==(const SstBlockHandle&) const = default;
};

// Consumes a handle from the front of *input. Returns false if *input does not
// begin with a handle.
[[nodiscard]] bool GetSstBlockHandle(rocksdb::Slice* input,
                                     SstBlockHandle* handle);

// Returns true if block and trailer end at or before `limit`, without overflow.
[[nodiscard]] bool HandleFits(const SstBlockHandle& handle, uint64_t limit);

enum class SstChecksum : uint8_t {
  kNone = 0,     // writers store 0 as the checksum
  kCrc32c = 1,   // masked
  kXxh32 = 2,
  kXxh64 = 3,    // low 32 bits
  kXxh3 = 4,     // low 32 bits; the last byte is mixed in afterwards
};

const char* SstChecksumName(SstChecksum type);

// Returns the checksum of a block, including its compression type byte, or of a
// footer. Does not include the context modifier. REQUIRES: `bytes` is not
// empty.
uint32_t ComputeSstChecksum(SstChecksum type, const rocksdb::Slice& bytes);

// Returns the kXxh3 checksum of bytes. `xxh3` is the hash of all bytes except
// the last one, and `last` is the last byte.
uint32_t MixLastByte(uint64_t xxh3, char last);

struct SstFooter {
  // True if the magic is that of a block-based table, or of such a table of
  // version 0 (LevelDB's).
  bool is_block_based = false;
  uint32_t format_version = 0;
  SstChecksum checksum = SstChecksum::kNone;
  uint64_t footer_offset = 0;          // offset in the file
  uint32_t base_context_checksum = 0;  // 0 if the version is below 6
  SstBlockHandle metaindex;
  bool has_index_handle = false;       // true if the version is below 6
  SstBlockHandle index;

  // Returns the value that is added to the checksum of a block at `offset`, so
  // that a valid block at a wrong position does not pass the check. 0 below
  // version 6.
  uint32_t ContextModifier(uint64_t offset) const;
};

// Reads and checks the footer of a table file. If it returns OK, both handles
// fit into the bytes before the footer.
// Corruption   the file is not a table, a field is out of its range, or the
//              padding is not zero.
// NotSupported the file is another kind of table (the message says which), has
//              the format of LevelDB, or a format version above
//              kMaxSstFormatVersion. is_block_based and format_version are set.
[[nodiscard]] rocksdb::Status ReadSstFooter(const ByteSource& source,
                                            SstFooter* footer);

}  // namespace sstferry
