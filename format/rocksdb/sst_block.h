// Blocks of a table file: reads a block by its handle, and walks its entries.
// Normative text: format/SST_LAYOUT.md, "Block"; keep both in step.
//
// On disk:
//   offset  size  field
//   0       n     payload, n = the handle's size
//   n       1     compression type   SstCompression
//   n+1     4     checksum of [0, n+1), plus the context modifier
//
// Decompressed:
//   entries        shared varint32, unshared varint32, value size varint32
//                  (absent where values are delta-encoded handles),
//                  offset in the values varint32 (only with bit 28, and only
//                  at restarts), unshared key bytes, value (not with bit 28)
//   values         only with bit 28: the values, in order, without gaps
//   restarts       4 bytes each: offsets of entries whose shared is 0
//   buckets        only with the hash bit: 1 byte each, a restart's number,
//                  254 (collision) or 255 (none); then their count, 2 bytes
//   values' offset only with bit 28: 4 bytes, where entries end
//   packed count   4 bytes: bits 0-27 number of restarts, bit 31 hash index
//                  (data blocks of at most 64 KiB), bit 29 uniform keys
//                  (index blocks), bit 28 separated values (data blocks);
//                  bits 28 and 29 only if the file's properties declare them
//
// Stricter than RocksDB, which asserts or does not check: every restart must be
// the offset of an entry with shared 0, lengths must add up exactly, and all
// keys together have at most MaxSstKeyBytes().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

#include "format/byte_source.h"
#include "format/limits.h"
#include "format/rocksdb/sst_compression.h"
#include "format/rocksdb/sst_footer.h"

namespace sstferry {

// Maximum size of a block. A block has at least one entry, and this entry may
// be as large as the largest value.
inline constexpr uint64_t kMaxSstBlockBytes =
    kMaxValueBytes + 2 * uint64_t{kMaxKeyBytes} + kMinChunkBytes;
// Returns the maximum size of all keys of a decompressed block. Keys share
// prefixes, so a crafted block of some MB may have keys of many TB, and code
// that reads the block works on whole keys. A key shares a prefix only with
// keys since the previous restart. By default, there are up to 16 entries
// between two restarts, so all keys have at most 16 times the block's bytes. In
// real blocks with more entries between restarts, all keys are far below 4 GiB.
constexpr uint64_t MaxSstKeyBytes(uint64_t block_bytes) {
  return (uint64_t{4} << 30) + 16 * block_bytes;
}
// Maximum size of a metaindex, properties or dictionary block: much larger than
// any writer makes.
inline constexpr uint64_t kMaxSstMetaBlockBytes = 64u << 20;
// Maximum size of the padding between blocks. To align data blocks, a writer
// pads at most one block or super block.
inline constexpr uint64_t kMaxSstPaddingBytes = 4u << 20;

// Owns a block's decompressed bytes. Not copyable, because contents() may point
// into the buffers.
class SstBlock {
 public:
  SstBlock() = default;
  SstBlock(const SstBlock&) = delete;
  SstBlock& operator=(const SstBlock&) = delete;

  // Returns bytes that are valid until the next ReadSstBlock() into this
  // object, or until its destruction.
  const rocksdb::Slice& contents() const { return contents_; }
  SstCompression compression() const { return compression_; }

 private:
  friend rocksdb::Status ReadSstBlock(const ByteSource&, const SstFooter&,
                                      const SstBlockHandle&, uint64_t,
                                      const rocksdb::Slice&, SstBlock*);
  std::string raw_;
  SstBuffer decompressed_;
  rocksdb::Slice contents_;
  SstCompression compression_ = SstCompression::kNone;
};

// Reads, verifies and decompresses the block at `handle`.
// Corruption   the block reaches into the footer, is larger than max_bytes
//              (stored or decompressed), cannot be decompressed, or has a wrong
//              checksum (for checksum type none, a checksum that is not 0).
// NotSupported the compression type is unknown.
[[nodiscard]] rocksdb::Status ReadSstBlock(const ByteSource& source,
                                           const SstFooter& footer,
                                           const SstBlockHandle& handle,
                                           uint64_t max_bytes,
                                           const rocksdb::Slice& dict,
                                           SstBlock* block);

// Verifies only the checksum. Needs little memory even for a large block.
[[nodiscard]] rocksdb::Status VerifySstBlock(const ByteSource& source,
                                             const SstFooter& footer,
                                             const SstBlockHandle& handle);

// Verifies the checksum of a block that is already in memory. `bytes` has the
// payload and the trailer. Does not decompress. Returns Corruption if `bytes`
// is not the block at `handle`.
[[nodiscard]] rocksdb::Status VerifySstBlockBytes(const SstFooter& footer,
                                                  const SstBlockHandle& handle,
                                                  const rocksdb::Slice& bytes);

// Returns the error Corruption for a block that has `found` bytes instead of
// the handle's size and a trailer.
[[nodiscard]] rocksdb::Status WrongSstBlockLength(const SstBlockHandle& handle,
                                                  uint64_t found);
// Compares two checksums of a block: `computed`, which includes the context
// modifier, and the one in `trailer`, which has kSstBlockTrailerBytes. Returns
// Corruption if they differ.
[[nodiscard]] rocksdb::Status CompareSstChecksums(SstChecksum type,
                                                  const SstBlockHandle& handle,
                                                  uint32_t computed,
                                                  const char* trailer);

struct SstBlockLayout {
  bool is_data = false;             // may have a hash index
  bool separated = false;           // bit 28 (separated values) must be set
  bool uniform = false;             // bit 29 (uniform keys) may be set
  bool values_are_handles = false;  // true in an index block
  // True if handles are delta-encoded. An entry then has no value size. Its
  // value is the change of the block size if `shared` is not 0, and a handle
  // otherwise.
  bool delta_handles = false;
  bool has_first_key = false;       // each handle is followed by a first key
};

// Iterates over the entries of one block in order and checks each of them.
//   SstBlockCursor cursor;
//   s = cursor.Init(contents, layout, offset);
//   while (s.ok() && (s = cursor.Next()).ok() && cursor.valid()) ...
// Borrows the contents. One thread.
class SstBlockCursor {
 public:
  // Positions the cursor before the first entry. `file_offset` is used only in
  // messages. Returns Corruption if the end of the block is malformed.
  [[nodiscard]] rocksdb::Status Init(const rocksdb::Slice& contents,
                                     const SstBlockLayout& layout,
                                     uint64_t file_offset);

  // Moves to the next entry. After the last entry, valid() is false. Returns
  // Corruption if the entry or the restart array is malformed, or if the keys
  // up to this entry are larger than MaxSstKeyBytes().
  [[nodiscard]] rocksdb::Status Next();

  bool valid() const { return valid_; }
  // Returns the key, valid until the next call of Next(). After the last entry,
  // returns the last key.
  const std::string& key() const { return key_; }
  // Returns the value. In an index block, this is the encoded handle (and first
  // key).
  const rocksdb::Slice& value() const { return value_; }
  // Return the parts of an index entry's value. REQUIRES: values_are_handles.
  const SstBlockHandle& handle() const { return handle_; }
  const rocksdb::Slice& first_key() const { return first_key_; }
  uint64_t entries() const { return entries_; }

 private:
  [[nodiscard]] rocksdb::Status Bad(const std::string& what) const;
  [[nodiscard]] rocksdb::Status ReadTail();
  [[nodiscard]] rocksdb::Status CheckMarks(uint32_t packed) const;
  [[nodiscard]] rocksdb::Status SkipBuckets(size_t* end);
  [[nodiscard]] rocksdb::Status CheckBuckets(size_t begin, size_t end) const;
  [[nodiscard]] rocksdb::Status CheckRestart(uint32_t shared);
  [[nodiscard]] rocksdb::Status CheckEnd() const;
  [[nodiscard]] rocksdb::Status ReadValue(uint32_t shared,
                                          uint32_t value_bytes,
                                          rocksdb::Slice* input);
  bool IsAtRestart() const;
  [[nodiscard]] rocksdb::Status DecodeHandle(bool is_shared,
                                             rocksdb::Slice* input);

  rocksdb::Slice contents_;
  SstBlockLayout layout_;
  uint64_t file_offset_ = 0;
  uint32_t num_restarts_ = 0;
  size_t restarts_at_ = 0;
  // restarts_at_, or the offset at which separated values begin.
  size_t entries_end_ = 0;
  size_t next_value_at_ = 0;  // only with separated values
  bool separated_ = false;
  size_t next_at_ = 0;        // offset of the next entry
  uint32_t next_restart_ = 0;
  uint64_t entries_ = 0;
  uint64_t key_bytes_ = 0;  // of all entries so far
  bool valid_ = false;
  std::string key_;
  rocksdb::Slice value_;
  SstBlockHandle handle_;
  rocksdb::Slice first_key_;
};

}  // namespace sstferry
