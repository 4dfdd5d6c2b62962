// Reads a write batch, the content of one WAL record. (RocksDB:
// db/write_batch.cc.)
//
//   offset  size  field
//   0       8     sequence of the first entry, little-endian
//   8       4     count of entries, without markers and notes
//   12      ...   entries: one byte of type, then fields
//
//   type              entry                fields
//   0x01, 0x05        put                  [family] key value
//   0x00, 0x04        delete               [family] key
//   0x07, 0x08        single delete        [family] key
//   0x0f, 0x0e        delete range        [family] begin end
//   0x02, 0x06        merge                [family] key operand
//   0x11, 0x10        blob index           [family] key index
//   0x16, 0x17        wide columns         [family] key columns
//   0x18, 0x19        timed put            [family] key value+time
//   0x03              note of the application  bytes (skipped)
//   0x09, 0x12, 0x13  begin of a section to be committed, written by
//                     write-committed, write-prepared, write-unprepared
//   0x0a              end of the section   name
//   0x0b, 0x15        commit               [timestamp] name
//   0x0c              rollback             name
//   0x0d              no-op
//
// `family` is a varint32, present only with the second type of each pair (with
// the first type, the column family is 0); the other fields are a varint32
// length and that many bytes.
#pragma once

#include <cstdint>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

enum class BatchEntryKind : uint8_t {
  kPut,
  kDelete,
  kSingleDelete,
  kDeleteRange,
  kMerge,
  kBlobIndex,
  kEntity,
  kTimedPut,
};

enum class BatchMarker : uint8_t {
  kBeginPrepare,           // write-committed
  // Write-prepared, and the last section of write-unprepared.
  kBeginPersistedPrepare,
  kBeginUnprepare,         // write-unprepared
  kEndPrepare,
  kCommit,
  kCommitWithTimestamp,
  kRollback,
  kNoop,
};

// Returns the number of RocksDB's type for an entry of this kind in column
// family 0. Tables use the same number (kSstType... in sst_reader.h).
uint8_t TableTypeOf(BatchEntryKind kind);

struct BatchHeader {
  uint64_t sequence = 0;
  uint32_t count = 0;
};

// Receives the entries and markers of a batch in order. Slices point into the
// record. If a function returns a status that is not OK, ReadWriteBatch() stops
// and returns this status.
class BatchHandler {
 public:
  virtual ~BatchHandler() = default;
  // Receives an entry. `value` is the end key of a kDeleteRange, and empty for
  // other deletions. Keys are as written, including the user timestamp if the
  // family has timestamps.
  [[nodiscard]] virtual rocksdb::Status OnEntry(
      BatchEntryKind kind, uint32_t family_id, const rocksdb::Slice& key,
      const rocksdb::Slice& value) = 0;
  // Receives a marker. `name` is the name of the transaction. It is empty for
  // kBegin... and kNoop.
  [[nodiscard]] virtual rocksdb::Status OnMarker(
      BatchMarker marker, const rocksdb::Slice& name) = 0;
};

// Reads `record`. If `handler` is null, reads only the header.
//   Corruption    a field does not fit, or the count is wrong.
//   NotSupported  this version does not know the type of an entry.
// Threads: any. Memory: none.
[[nodiscard]] rocksdb::Status ReadWriteBatch(const rocksdb::Slice& record,
                                             BatchHeader* header,
                                             BatchHandler* handler);

}  // namespace sstferry
