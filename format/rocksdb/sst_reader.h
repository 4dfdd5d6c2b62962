// Reads the structure of one block-based table file (footer, metaindex,
// properties, index) without trusting any of its bytes. Nothing here opens the
// file with RocksDB, which aborts the process on some files.
//
// Ownership: borrows the ByteSource, which must outlive the reader.
// Threads:   one at a time (const members read into local buffers, so several
//            threads may share a reader if the source allows it).
// Memory:    the properties, plus one index block and one data block during a
//            call; each limited by kMaxSstBlockBytes.
// Errors:    Corruption "what: expected X, found Y, where"; NotSupported for
//            intact tables of an unknown kind; errors of the source's Read().
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

#include "format/byte_source.h"
#include "format/limits.h"
#include "format/release.h"
#include "format/rocksdb/sst_block.h"
#include "format/rocksdb/sst_footer.h"
#include "format/rocksdb/sst_properties.h"

namespace sstferry {

// Types of entries: values of the type byte in the trailer of an internal key.
inline constexpr uint8_t kSstTypeDeletion = 0x00;
inline constexpr uint8_t kSstTypeValue = 0x01;
inline constexpr uint8_t kSstTypeRangeDeletion = 0x0f;
inline constexpr uint8_t kSstTypeBlobIndex = 0x11;
inline constexpr uint8_t kSstTypeWideColumnEntity = 0x16;

inline constexpr char kSstPropertiesName[] = "rocksdb.properties";
// Prefix of the name of a block that lists the partitions of a filter.
inline constexpr char kPartitionedFilterPrefix[] = "partitionedfilter.";

struct SstMetaBlock {
  std::string name;
  SstBlockHandle handle;
};

// One entry of the index: a data block. Slices are valid only during a visit.
struct SstIndexEntry {
  // User key that is not below any user key of the block, and below every user
  // key of the next block. In some old formats, it may equal the first user key
  // of the next block.
  rocksdb::Slice separator;
  // Handle of the data block. The block ends before the footer; handles are in
  // file order and do not overlap.
  SstBlockHandle handle;
  // Internal key of the block's first entry. Empty if the index type is not
  // kBinarySearchWithFirstKey.
  rocksdb::Slice first_key;
};

// Maximum size of the keys of all anchors of a table. A crafted index of some
// MB may have separators of many GB, because they share prefixes.
inline constexpr uint64_t kMaxAnchorKeyBytes = 64u << 20;

// A position at which a file can be split. The first `file_bytes` bytes contain
// all user keys up to and including `user_key`.
struct SstAnchor {
  std::string user_key;
  uint64_t file_bytes = 0;
};

class SstReader {
 public:
  using IndexVisitor =
      std::function<rocksdb::Status(const SstIndexEntry& entry)>;
  using BlockVisitor =
      std::function<rocksdb::Status(const SstBlockHandle& handle)>;
  // Receives an entry; `key` is an internal key. Called in file order.
  using EntryVisitor = std::function<rocksdb::Status(
      const rocksdb::Slice& key, const rocksdb::Slice& value)>;

  // Reads and checks footer, metaindex, properties and dictionary.
  [[nodiscard]] rocksdb::Status Open(const ByteSource* source);

  const SstFooter& footer() const { return footer_; }
  const SstProperties& properties() const { return properties_; }
  // Returns the meta blocks in metaindex order; their names strictly increase.
  const std::vector<SstMetaBlock>& meta_blocks() const { return meta_blocks_; }
  // Returns the block with this name; null: not found.
  const SstMetaBlock* FindMetaBlock(const std::string& name) const;
  // Returns true if the table has range deletions. Like RocksDB, looks for the
  // block instead of the property, because RocksDB 5.0 to 5.14 wrote no
  // property that counts range deletions.
  bool has_range_deletions() const;
  // Returns the handle of the (top-level) index block.
  const SstBlockHandle& index_handle() const { return index_handle_; }

  // Visits the index entry of every data block. Stops at the visitor's first
  // failure and returns it. Checks that handles end before the footer, increase
  // and do not overlap. Also checks every partition of a two-level index. A
  // table with only range deletions has no index entries.
  [[nodiscard]] rocksdb::Status ForEachIndexEntry(
      const IndexVisitor& visitor) const;

  // Visits the partitions that the block at `top` lists. `top` is the top-level
  // block of the index or of a filter. Stops at the visitor's first failure and
  // returns it.
  [[nodiscard]] rocksdb::Status ForEachPartition(
      const SstBlockHandle& top, const BlockVisitor& visitor) const;

  // Reads a data block into *block, and positions *cursor before its first
  // entry. The cursor borrows the block. The cursor does not check that a key
  // has the 8-byte trailer of an internal key.
  [[nodiscard]] rocksdb::Status OpenDataBlock(const SstBlockHandle& handle,
                                              SstBlock* block,
                                              SstBlockCursor* cursor) const;

  // Visits every entry of one data block. A key shorter than 8 bytes is
  // Corruption.
  [[nodiscard]] rocksdb::Status ForEachEntry(const SstBlockHandle& handle,
                                             const EntryVisitor& visitor) const;

  // Visits every range deletion. The key is the internal key at which the
  // deletion begins, and the value is the user key (exclusive) at which it
  // ends. A key shorter than 8 bytes is Corruption.
  [[nodiscard]] rocksdb::Status ForEachRangeDeletion(
      const EntryVisitor& visitor) const;

  // Finds at most max_count anchors, which are spread evenly over the bytes of
  // the data blocks. The last anchor is the end of the last block. Each other
  // anchor has a key of at most kMaxKeyBytes. All keys together have at most
  // kMaxAnchorKeyBytes, so a table with long keys has fewer anchors. REQUIRES:
  // max_count > 0.
  [[nodiscard]] rocksdb::Status Anchors(size_t max_count,
                                        std::vector<SstAnchor>* anchors) const;

  const ByteSource& source() const { return *source_; }
  // Returns true if the data blocks are compressed with a dictionary.
  bool has_dictionary() const { return !dictionary_.empty(); }

 private:
  struct IndexWalk;

  [[nodiscard]] rocksdb::Status ReadMetaindex();
  [[nodiscard]] rocksdb::Status ReadProperties();
  bool ReadStampedProperties(const SstBlockHandle& handle);
  [[nodiscard]] rocksdb::Status FindIndex();
  [[nodiscard]] rocksdb::Status ReadDictionary();
  SstBlockLayout IndexLayout(bool top_level) const;
  [[nodiscard]] rocksdb::Status VisitEntries(const SstBlockHandle& handle,
                                             const EntryVisitor& visitor,
                                             SstBlockCursor* cursor) const;
  [[nodiscard]] rocksdb::Status WalkIndexBlock(const SstBlockHandle& handle,
                                               bool top_level,
                                 IndexWalk* walk) const;
  [[nodiscard]] rocksdb::Status VisitPartition(const SstBlockCursor& cursor,
                                 IndexWalk* walk) const;
  [[nodiscard]] rocksdb::Status VisitDataHandle(const SstBlockCursor& cursor,
                                  IndexWalk* walk) const;

  const ByteSource* source_ = nullptr;
  SstFooter footer_;
  std::vector<SstMetaBlock> meta_blocks_;
  SstProperties properties_;
  SstBlockHandle index_handle_;
  std::string dictionary_;
};

// Adds to *needs the releases that a table requires. `reader` has tried to open
// the table. If it returned NotSupported, only the format_version is known.
void AddTableNeeds(const SstReader& reader, Needs* needs);

}  // namespace sstferry
