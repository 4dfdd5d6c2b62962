// Reads the logical records of a RocksDB log file (a WAL or a MANIFEST) that
// may still be growing.
//
// A log is a sequence of 32 KiB blocks. A physical record does not cross the
// end of a block. A logical record is one physical record, or it is split into
// a first, any number of middle, and a last physical record. If the rest of a
// block is too small for a header, the writer fills it with zeros (up to 10
// bytes; more before a record about the log itself). All integers are
// little-endian. (RocksDB: db/log_format.h, db/log_reader.cc.)
//
//   offset  size  field     value
//   0       4     checksum  masked CRC-32C of type, log number and payload
//   4       2     length    of the payload
//   6       1     type      see below
//   7       4     log       low half of the WAL's number, recyclable only
//
//   type      meaning                                    header
//   0         not written: rest of the block is skipped  7
//   1 .. 4    whole, first, middle, last                 7
//   5 .. 8    the same, recyclable                       11
//   9         compression: fixed32 type, 7 is zstd       7
//   10, 11    timestamp sizes: (fixed32, fixed16)...     7, 11
//   130, 131  the previous WAL: number, size, sequence   7, 11
//   others    128 and above ignored, below 128 refused   7
//
// If the log begins with a compression record, the payloads of types 1 to 8 are
// compressed. Each logical record is then one zstd stream.
//
// RocksDB writes only types 1 to 4 into a MANIFEST.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

#include "format/byte_source.h"

namespace sstferry {

enum class LogKind : uint8_t { kWal, kManifest };

// Reason why the records of a log end.
enum class LogStop : uint8_t {
  kEnd,        // no more bytes, or zeros that RocksDB's reader skips
  kOldRecord,  // a record of the WAL that was in this recycled file before
  kOther,      // other bytes, or the log ends inside a record
};

// A log consists of blocks of this size; no physical record crosses a block's
// end.
inline constexpr uint64_t kLogBlockBytes = 32u << 10;
// Maximum decompressed size of a logical record of a WAL. It is much larger
// than any write batch that RocksDB writes, because memtables and 32-bit counts
// limit these batches. The maximum for a record of a MANIFEST is
// kMaxManifestMemoryBytes.
inline constexpr uint64_t kMaxLogRecordBytes = 1ull << 30;

// Follows one log. See the beginning of this file.
//
// Owner:   borrows nothing; each Follow() borrows its source.
// Threads: one at a time.
// Memory:  one block, one logical record (kMaxLogRecordBytes) and one zstd
//          stream (its window is at most 128 MiB). None of these is allocated
//          before the bytes that need it were read.
class LogFollower {
 public:
  // Receives a logical record. `end_offset` is the value of end() after the
  // record.
  using OnRecord = std::function<rocksdb::Status(const rocksdb::Slice& record,
                                                 uint64_t end_offset)>;

  // `log_number` is the number of the WAL; a MANIFEST has no number. A recycled
  // file may still have records of its previous WAL, which have another number.
  explicit LogFollower(LogKind kind, uint64_t log_number = 0);
  ~LogFollower();
  LogFollower(const LogFollower&) = delete;
  LogFollower& operator=(const LogFollower&) = delete;

  // Calls `on_record` for each complete logical record that earlier calls have
  // not delivered. Stops at source.size() (read once), or at the first byte
  // that is not part of a complete valid record. Returns OK in both cases,
  // unless a MANIFEST is damaged. May be called again after the file has grown.
  // Skips zeros up to a block's end, which RocksDB's reader also skips
  // silently. Stops where RocksDB's reader reports damage.
  //   Corruption    a logical record is larger than kMaxLogRecordBytes; or
  //                 is_damaged().
  //   kRefused      a MANIFEST is larger than kMaxManifestFileBytes, or one of
  //                 its records is too large.
  //   NotSupported  this version does not know the type or the compression of a
  //                 valid record, and RocksDB does not let a reader ignore it;
  //                 or RocksDB does not write such a record into a MANIFEST.
  //   others        errors of `source` or `on_record`. The record does not
  //                 count as delivered, and the next call begins with it.
  [[nodiscard]] rocksdb::Status Follow(const ByteSource& source,
                                       const OnRecord& on_record);

  // Continues after `end`. Another follower of the same log has found that a
  // complete record ends there. Does nothing if this follower is already at or
  // past `end`. REQUIRES: Follow() has read the first block of the log, or all
  // of a shorter log. The first block shows if the log is compressed and
  // recyclable.
  void SkipTo(uint64_t end);

  // Returns the offset after the last complete record (a data record, or one
  // about the log itself); 0 if there is no record.
  uint64_t end() const { return end_; }

  // Returns true if the log has recyclable records.
  bool is_recyclable() const { return recyclable_; }

  // Returns the types of the valid records about the log itself (9, 10, 11,
  // 130, 131, and ignored types). A reader of this log must know these types,
  // except the ignored ones.
  const std::set<uint8_t>& meta_record_types() const { return meta_types_; }

  // Returns true if the last Follow() found a truncated or damaged record of
  // this log after end(). In a recyclable log, only records with this log's
  // number and truncated headers count. Other bytes may belong to the previous
  // WAL in the file.
  bool stopped_inside() const { return stopped_inside_; }

  // Returns why the last Follow() stopped at end().
  LogStop stop() const { return stop_; }

  // Returns true if the last Follow() found a wrong record of a MANIFEST in
  // which no bytes are missing. RocksDB opens no database with such a MANIFEST.
  // If bytes are missing at the end of the file, is_damaged() is false: the
  // owner is writing the next record, or crashed while writing it. RocksDB and
  // Follow() then treat the last complete record as the end of the MANIFEST.
  // Always false for a WAL, because RocksDB's options decide if a damaged WAL
  // can be opened.
  bool is_damaged() const { return is_damaged_; }

 private:
  struct Physical;  // one physical record
  struct Reading;   // state of one Follow()
  class Inflater;

  // How Follow() continues after a physical record.
  enum class Step : uint8_t {
    kNext,        // with the next record of the block
    kNextBlock,   // at the next block; the rest of this one is empty
    kOldRecord,   // stop: as LogStop::kOldRecord
    kEnd,         // stop: no more bytes of this log
    kEndsInside,  // stop: more bytes of this log follow
    kDamaged,     // stop: as is_damaged()
  };

  Step Look(const rocksdb::Slice& rest, bool whole_block, Physical* physical,
            Reading* reading) const;
  Step EndOfDamage(const rocksdb::Slice& rest) const;
  Step Wrong(const std::string& expected, const std::string& found,
             Reading* reading) const;
  rocksdb::Status Take(const Physical& physical, Reading* reading,
                       const OnRecord& on_record, Step* step);
  rocksdb::Status TakeMeta(const Physical& physical, Reading* reading,
                           Step* step);
  rocksdb::Status NotKnown(const std::string& found, uint64_t offset) const;

  const LogKind kind_;
  const uint32_t log_number_;
  uint64_t end_ = 0;
  bool first_read_ = false;  // on_record was called
  bool recyclable_ = false;
  bool stopped_inside_ = false;
  LogStop stop_ = LogStop::kEnd;
  bool is_damaged_ = false;
  std::set<uint8_t> meta_types_;
  std::unique_ptr<Inflater> inflater_;  // null: not compressed
};

// Positions `follower` after the record that ends at `end`. Does not deliver
// earlier records. Reads only the first block of the log, or only the bytes
// before `end` if the block is longer.
[[nodiscard]] rocksdb::Status StartAt(const ByteSource& log, uint64_t end,
                                      LogFollower* follower);
// Follows `bytes`, which are the bytes of a log from offset `begin` on.
// REQUIRES: `begin` is follower->end().
[[nodiscard]] rocksdb::Status FollowBehind(
    uint64_t begin, const rocksdb::Slice& bytes, LogFollower* follower,
    const LogFollower::OnRecord& on_record);

}  // namespace sstferry
