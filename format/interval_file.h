// The file `sstferry.intervals` in a replica's directory. It stores what the
// next refresh needs to find unchanged intervals: the replica's source, the
// interval records, and the replica's files that contain the data. Normative
// text: format/FORMAT.md, "IntervalRecords". The file is one of
// format/sealed_file.h with magic 53 46 43 4f 56 45 52 33 ("SFCOVER3").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/messages.h"

namespace sstferry {

inline constexpr char kIntervalFileName[] = "sstferry.intervals";
inline constexpr char kIntervalMagic[9] = "SFCOVER3";
inline constexpr uint64_t kMaxIntervalPayloadBytes = 1ull << 28;
inline constexpr uint32_t kMaxTargetFiles = 1u << 22;

// A live file of the target. Its bounds are still needed after the file was
// deleted, because intervals that it overlapped may have changed.
struct RecordedTable {
  Digest128 id;          // RocksDB's unique id
  std::string smallest;  // user keys, including those of tombstones
  std::string largest;
  uint64_t bytes = 0;
  uint64_t smallest_sequence = 0;
  uint64_t largest_sequence = 0;
  // Counters from the table's properties; `entries` includes the counts below.
  uint64_t entries = 0;
  uint64_t deletions = 0;  // includes range deletions
  uint64_t merge_operands = 0;
  uint64_t range_deletions = 0;
  bool may_single_delete = false;  // not searched for SingleDeletes
  friend bool operator==(const RecordedTable&, const RecordedTable&) = default;
};

struct RecordedFamily {
  std::string name;
  std::vector<RecordedTable> files;  // all live files of the family
  friend bool operator==(const RecordedFamily&,
                         const RecordedFamily&) = default;
};

struct IntervalFile {
  static constexpr char kName[] = "interval records";

  TransferId transfer_id{};           // the transfer that wrote this file
  std::string source_database_id;
  uint64_t sequence = 0;              // of this transfer's source snapshot
  std::string target_database_id;     // database of these files; empty: unknown
  std::vector<RecordedFamily> families;
  // IntervalRecord::family is an index in `families`. If a record's `doubted`
  // is set, it was already doubted when this file was written, whatever the
  // files show now.
  std::vector<IntervalRecord> intervals;
  friend bool operator==(const IntervalFile&, const IntervalFile&) = default;
};

// Appends a complete file. kRefused: it would exceed its maximum size.
[[nodiscard]] rocksdb::Status EncodeIntervalFile(const IntervalFile& intervals,
                                              std::string* out);

// Decodes a file. Corruption: not exactly one complete file, or an interval
// record refers to a family that is not in the file.
[[nodiscard]] rocksdb::Status DecodeIntervalFile(const rocksdb::Slice& file,
                                              IntervalFile* intervals);

}  // namespace sstferry
