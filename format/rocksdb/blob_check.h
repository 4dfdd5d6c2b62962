// Checks a complete blob file of RocksDB by its own checksums, and finds the
// references of entries to values in blob files.
//
// All integers are little-endian. (RocksDB: db/blob/blob_log_format.h.)
//
//   header   30 bytes  magic 37 8f 24 00, u32 version 1, u32 family, u8 flags,
//                      u8 compression, u64 and u64 expiration range
//   record   32 bytes  u64 key bytes, u64 value bytes, u64 expiration,
//                      masked CRC-32C of these 24 bytes, masked CRC-32C of
//                      key and value; then key and value
//   footer   32 bytes  magic, u64 count, u64 and u64 expiration range,
//                      masked CRC-32C of the previous 28 bytes
#pragma once

#include <cstdint>
#include <functional>

#include "format/byte_source.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Reads a whole blob file and sets *count to the number of its records. Returns
// OK if every record and the footer have the correct checksum, records follow
// each other without gaps, and the footer has the same count. The header has a
// magic but no checksum. Otherwise returns Corruption, or errors of the
// source's Read(). Memory: 512 KiB.
[[nodiscard]] rocksdb::Status CheckBlobFile(const ByteSource& source,
                                            uint64_t* count);

inline constexpr uint64_t kBlobHeaderBytes = 30;
inline constexpr uint64_t kBlobRecordHeadBytes = 32;
inline constexpr uint64_t kBlobFooterBytes = 32;

// Checks the header of a blob file. Returns Corruption if it is damaged.
// CheckBlobFooter() does the same for the footer, and sets *count to the number
// of records in the footer.
[[nodiscard]] rocksdb::Status CheckBlobHeader(const rocksdb::Slice& header);
[[nodiscard]] rocksdb::Status CheckBlobFooter(const rocksdb::Slice& footer,
                                              uint64_t offset,
                                              uint64_t* count);

// Returns Corruption unless `record` is exactly one record with `key`. `offset`
// is the offset of the record in its file.
[[nodiscard]] rocksdb::Status CheckBlobRecord(const rocksdb::Slice& record,
                                              const rocksdb::Slice& key,
                                              uint64_t offset);

// Reference to a value in a blob file. Tables and WALs contain such references.
struct BlobReference {
  // Number of the blob file. No blob file has the number 0. In a table with
  // embedded blobs, 0 means the table itself.
  uint64_t file = 0;
  uint64_t offset = 0;  // offset of the value, which follows its key
  uint64_t bytes = 0;   // size of the stored value
};

// Calls `visit` for each value in a blob file to which an entry refers. `type`
// is the entry's type (kSstType... in sst_reader.h). A blob index is one
// reference. A wide-column entity of version 2 may have one in each column:
//
//   varint32  version 2, number of columns, bytes of the name sizes, of the
//             value sizes and of the names
//   columns   for each: u8 type (1 value, 0x11 blob index); then varint32 name
//             sizes; varint32 value sizes; names; values
//
// If an entry cannot be read, it may refer to any file, so calls `visit` with
// file 0. An entry cannot be read if it is damaged, if it has a kind of
// reference that RocksDB's own blob files do not need, or if it is an entity of
// another version.
void ForEachBlobReference(
    uint8_t type, const rocksdb::Slice& value,
    const std::function<void(const BlobReference&)>& visit);

}  // namespace sstferry
