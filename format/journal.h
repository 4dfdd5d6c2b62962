// The journal of a target records, in order, what the target has made durable.
// It is an append-only file of records. A crash during an append leaves an
// incomplete record at the end (a torn tail). This is normal, and the journal
// then ends before the torn tail. A damaged record before the tail is
// Corruption. Normative text: format/FORMAT.md, "Journal".
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

#include "format/codec.h"
#include "format/frame.h"
#include "format/limits.h"
#include "format/messages.h"

namespace sstferry {

inline constexpr char kJournalMagic[9] = "SFJOURN1";
inline constexpr uint32_t kJournalMagicBytes = 8;
inline constexpr uint32_t kJournalHeaderBytes = 16;
// Room for a message of the plan, and for the fields before it in a record.
inline constexpr uint32_t kMaxJournalPayloadBytes = kMaxPayloadBytes + 16;

enum class JournalRecordType : uint8_t {
  // The transfer of this journal, always the first record. If a later run
  // resumes the transfer with another command line, the run appends another
  // such record.
  kTransfer = 1,
  kPlan = 2,      // the plan's messages (format/plan.h), one per record
  kChunk = 3,     // a chunk is durable in staging, but may not be ingested
  kPartDone = 4,  // the journal has a record of every chunk of the part
  kComplete = 5,  // both sides have the same totals; only the rename is left
  kIngested = 6,  // the chunk was ingested
  kTargetFiles = 7,  // the target's table files when they were examined
};
inline constexpr uint8_t kMaxJournalRecordType = 7;
const char* JournalRecordTypeName(JournalRecordType type);

// Ways in which a pull builds the new contents of TARGET_DIR. A pull can resume
// an unfinished pull only if the mode is the same, but another command may have
// begun it.
inline constexpr char kIngestMode[] = "ingest";
inline constexpr char kLinkedMode[] = "ingest into links";
inline constexpr char kCloneMode[] = "clone";
// First cuts of a follower. They become standbys, so no pull may resume them.
inline constexpr char kFollowMode[] = "follow";
inline constexpr char kAdoptMode[] = "follow --adopt";
// A clone that the pull removes at its end.
inline constexpr char kDrillMode[] = "drill";
inline constexpr char kInPlaceMode[] = "in place";

struct JournalTransfer {
  static constexpr char kName[] = "JournalTransfer";

  TransferId transfer_id{};
  std::string source;              // as given by the operator
  std::string source_database_id;
  uint64_t snapshot_sequence = 0;
  std::string mode;                // one of the modes above
  // The requested selection; no families: all families.
  std::vector<std::string> families;
  KeyInterval interval;
  uint64_t chunk_bytes = 0;
  std::string application;  // as in the OpenRequest; empty: same as the source
  // True if each chunk was durable before its record was written. If false, the
  // records are valid only until the machine restarts.
  bool durable = true;
  std::string boot_id;  // boot id of this machine when the pull began
  std::string command_line;        // shell-quoted; empty: unknown
  bool verify = false;  // a verify was requested; later runs keep this
  // Id of the finding (format/health_file.h) that TARGET_DIR had when the pull
  // began; zeros: none. To repair the fault, the pull compares everything.
  TransferId mends{};
  friend bool operator==(const JournalTransfer&,
                         const JournalTransfer&) = default;
};

// One message of the plan, unchanged from the source.
struct JournalPlan {
  static constexpr char kName[] = "JournalPlan";

  FrameType type = FrameType::kOpened;
  uint16_t reserved = 0;
  std::string payload;
  friend bool operator==(const JournalPlan&, const JournalPlan&) = default;
};

struct JournalChunk {
  static constexpr char kName[] = "JournalChunk";

  ChunkEnd chunk;
  PartKind kind = PartKind::kRebuilt;
  // The SST file's unique id, from its properties: the database id, session id
  // and file number of its creator. It is compared with the ids in the target's
  // MANIFEST.
  std::string creating_database_id;
  std::string creating_session_id;
  uint64_t original_file_number = 0;
  bool unchecked = false;  // the blocks of the chunk have no checksums
  Digest128 content{};     // XXH3-128 of a unit's bytes; zeros for other chunks
  friend bool operator==(const JournalChunk&, const JournalChunk&) = default;
};

// Records that a chunk of a refresh was ingested. The target's MANIFEST cannot
// show this later, because a compaction may merge the chunk with other files.
struct JournalIngested {
  static constexpr char kName[] = "JournalIngested";

  uint32_t part_id = 0;
  uint32_t ordinal = 0;
  friend bool operator==(const JournalIngested&,
                         const JournalIngested&) = default;
};

// Identifies the table files that a refresh's target had when the pull examined
// it, without the pull's own chunks. If the table files differ later, another
// process has written to the database.
// For a pull that links files, PullTarget::OriginOfLinks() identifies the
// directory of the links. A clone has only this origin, and no digest.
struct JournalTargetFiles {
  static constexpr char kName[] = "JournalTargetFiles";

  // RocksDB's id of the target database, and OriginOfLinks().
  std::string database_id;
  Digest128 files;          // digest of the requested families' files; see
                            // FORMAT.md
  friend bool operator==(const JournalTargetFiles&,
                         const JournalTargetFiles&) = default;
};

struct JournalPartDone {
  static constexpr char kName[] = "JournalPartDone";

  uint32_t part_id = 0;
  Totals totals;
  friend bool operator==(const JournalPartDone&,
                         const JournalPartDone&) = default;
};

struct JournalComplete {
  static constexpr char kName[] = "JournalComplete";

  Totals totals;
  friend bool operator==(const JournalComplete&,
                         const JournalComplete&) = default;
};

// Appends one complete record at offset `file_offset` of the journal.
void AppendJournalRecord(JournalRecordType type, const rocksdb::Slice& payload,
                         uint64_t file_offset, std::string* out);

// Checks the magic. Incomplete: the journal is shorter than the magic.
// Corruption: another magic.
[[nodiscard]] rocksdb::Status CheckJournalMagic(const rocksdb::Slice& journal);

struct JournalRecord {
  uint64_t offset = 0;
  uint64_t total_bytes = 0;
  JournalRecordType type = JournalRecordType::kTransfer;
  rocksdb::Slice payload;  // points into the input
};

// Reads the record at `offset` of a journal. The first record is at
// kJournalMagicBytes.
// OK           *record is set.
// NotFound     `offset` is the end of the file.
// Incomplete   a torn tail begins here, so no later record was ever durable.
//              Damage to the last record gives the same result.
// Corruption   the record is damaged, but a complete record follows. (To find
//              one, the rest of the journal is read once.)
[[nodiscard]] rocksdb::Status ReadJournalRecord(const rocksdb::Slice& journal,
                                                uint64_t offset,
                                                JournalRecord* record);

}  // namespace sstferry
