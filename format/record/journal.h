// The journal: what a target has made durable, in the order it did so. An
// append-only file of records; a torn tail (a crash while appending) is normal
// and ends the journal, a damaged record before the tail is Corruption.
// Normative text: format/FORMAT.md, "Journal".
//
//   file:    offset  size  field
//            0       8     magic 53 46 4a 4f 55 52 4e 31 ("SFJOURN1")
//            8       ...   records
//
//   record:  0       4     payload_bytes, at most kMaxJournalPayloadBytes
//            4       1     type
//            5       3     reserved, 0
//            8       8     XXH3-64 of payload, seeded with the XXH3-64 of
//                          bytes [0, 8) and of the record's file offset
//            16      ...   payload
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/message/messages.h"

namespace sstferry {

inline constexpr char kJournalMagic[9] = "SFJOURN1";
inline constexpr uint32_t kJournalMagicBytes = 8;
inline constexpr uint32_t kJournalHeaderBytes = 16;
inline constexpr uint32_t kMaxJournalPayloadBytes = 1u << 20;

enum class JournalRecordType : uint8_t {
  kTransfer = 1,  // first record: what this journal is bound to
  kRange = 2,     // one per range of the plan
  kChunk = 3,     // a chunk is durable in staging, not yet surely ingested
  kRangeDone = 4, // every chunk of the range has its record
  kComplete = 5,  // totals agreed with the source; only the rename is left
  kOpened = 6,    // the source's Opened, as it came
  kFamily = 7,    // one per column family of the plan, as it came
  kCovers = 8,    // a batch of what to remember, as it came
  kIngested = 9,  // the chunk was ingested
  kTargetFiles = 10,  // what the target held when it was judged
};
inline constexpr uint8_t kMaxJournalRecordType = 10;
const char* JournalRecordTypeName(JournalRecordType type);

struct JournalTransfer {
  TransferId transfer_id{};
  std::string source;              // as the operator named it
  std::string source_database_id;
  uint64_t snapshot_sequence = 0;
  std::string mode;                // "seed"
  Digest128 options_digest;        // over family descriptions and formats
  // As it was asked for; no families: all.
  std::vector<std::string> families;
  KeyInterval interval;
  uint64_t chunk_bytes = 0;
  uint32_t format_version = 0;
  CarryMode carry = CarryMode::kAuto;
  // Whether a chunk is durable before its record is; if not, the records hold
  // for as long as the machine is up.
  bool durable = true;
  std::string boot_id;             // of the machine, when the pull began
  uint32_t range_count = 0;        // Range records that follow
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const JournalTransfer&,
                         const JournalTransfer&) = default;
};

struct JournalRange {
  Range range;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const JournalRange&, const JournalRange&) = default;
};

struct JournalChunk {
  ChunkEnd chunk;
  ChunkKind kind = ChunkKind::kRebuilt;
  // The SST's unique id (creating database id, session id, file number as the
  // file's properties give them): what the target's MANIFEST is compared with.
  std::string creating_database_id;
  std::string creating_session_id;
  uint64_t original_file_number = 0;
  bool unchecked = false;  // its blocks have no checksums
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const JournalChunk&, const JournalChunk&) = default;
};

// Of a refresh, whose chunks compactions may merge with others at any time.
struct JournalIngested {
  uint32_t range_id = 0;
  uint32_t ordinal = 0;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const JournalIngested&,
                         const JournalIngested&) = default;
};

// The table files of a refresh's target when it was judged, without those of
// chunks. Whoever writes there leaves others.
struct JournalTargetFiles {
  std::string database_id;  // RocksDB's identity of the target
  Digest128 files;          // of the families asked for; see FORMAT.md
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const JournalTargetFiles&,
                         const JournalTargetFiles&) = default;
};

struct JournalRangeDone {
  uint32_t range_id = 0;
  Totals totals;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const JournalRangeDone&,
                         const JournalRangeDone&) = default;
};

struct JournalComplete {
  Totals totals;
  void EncodeTo(std::string* out) const;
  [[nodiscard]] rocksdb::Status DecodeFrom(const rocksdb::Slice& payload);
  friend bool operator==(const JournalComplete&,
                         const JournalComplete&) = default;
};

// Appends one whole record that will stand at `file_offset`.
void AppendJournalRecord(JournalRecordType type, const rocksdb::Slice& payload,
                         uint64_t file_offset, std::string* out);

// Incomplete when the journal ends inside its magic, Corruption when it begins
// with something else.
[[nodiscard]] rocksdb::Status CheckJournalMagic(const rocksdb::Slice& journal);

struct JournalRecord {
  uint64_t offset = 0;
  uint64_t total_bytes = 0;
  JournalRecordType type = JournalRecordType::kTransfer;
  rocksdb::Slice payload;  // points into the input
};

// Reads the record at `offset` of a whole journal's bytes; the first stands at
// kJournalMagicBytes.
// OK           *record is set.
// NotFound     `offset` is the end of the file.
// Incomplete   a torn tail begins here: nothing after it was ever promised.
//              Damage to the last record looks the same.
// Corruption   damaged, and a whole record follows (the search for one costs
//              a pass over the rest of the journal).
[[nodiscard]] rocksdb::Status ReadJournalRecord(const rocksdb::Slice& journal,
                                                uint64_t offset,
                                                JournalRecord* record);

}  // namespace sstferry
