// The messages of the control connection. See format/messages.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/messages_any.h"
#include "format/messages_status.h"
#include "format/other_file.h"
#include "format/part.h"

namespace sstferry {

// Asks for the served databases.
struct ListRequest {
  static constexpr char kName[] = "ListRequest";

  std::vector<std::string> known;  // databases of which the target has replicas
  friend bool operator==(const ListRequest&, const ListRequest&) = default;
};

struct ListReply {
  static constexpr char kName[] = "ListReply";

  std::vector<std::string> names;
  // Id of the file system of the directory in which the source searches for
  // databases; 0: the source has no such directory. The target compares this id
  // with the id in an earlier ListReply.
  uint64_t file_system = 0;
  // False if the source may have databases that it does not list. For example,
  // it could not read a directory, or it does not list a database in `known`
  // and cannot prove that the database is gone.
  bool is_complete = false;
  friend bool operator==(const ListReply&, const ListReply&) = default;
};

enum class Purpose : uint8_t { kPull = 0, kPlan = 1, kVerify = 2 };

// The snapshot that an OpenRequest asks for.
enum class SnapshotUse : uint8_t {
  kNew = 0,     // a new snapshot
  // The snapshot of named_transfer, to resume that transfer; only for a pull.
  kResume = 1,
  kShare = 2,   // the snapshot of named_transfer, unchanged
  // A new snapshot. The source may release the snapshot of named_transfer. Only
  // for a pull.
  kInstead = 3,
  // A recent snapshot that another target got, or a new one. If named_transfer
  // is not zeros, the source may release its snapshot, as with kInstead.
  kLatest = 4,
};

enum class TransferMode : uint8_t {
  kSeed = 0,     // into a new database: chunks contain only entries
  kRefresh = 1,  // into an existing database: deltas for existing data
  kClone = 2,    // the source's files, unchanged, in units
};

struct OpenRequest {
  static constexpr char kName[] = "OpenRequest";

  std::string database;               // NAME of the served database
  Purpose purpose = Purpose::kPull;
  std::vector<std::string> families;  // empty: all
  KeyInterval interval;               // --begin, --end, in each family's order
  uint32_t lanes = 0;
  uint64_t chunk_bytes = 0;
  // RocksDB release of the application that will open the replica; empty: the
  // release of the source's application.
  std::string application;
  // Maximum rate at which the source sends SST bytes, in bytes per second. 0:
  // no limit, or the target itself enforces the limit.
  uint64_t max_rate_bytes_per_sec = 0;
  bool full_rate = false;  // the source never slows down for its application
  WireCompression compression = WireCompression::kNone;
  uint32_t compression_level = 0;       // 0: the source's choice
  SnapshotUse snapshot_use = SnapshotUse::kNew;
  TransferId named_transfer{};           // zero with kNew
  TransferMode mode = TransferMode::kSeed;
  // Only for a new refresh: names of families in which the target has entries,
  // as many as fit into the message. The source expects to compare these
  // families, and to send the others.
  std::vector<std::string> replica_families;
  // With kLatest: seconds since the target asked for the first time and got
  // Busy, rounded up. A snapshot that was recent enough at that time is
  // accepted now.
  uint64_t waited_seconds = 0;
  // With kLatest: id of the transfer in TARGET_DIR; zeros: no transfer. The
  // target gets no snapshot that may be older than the snapshot of that
  // transfer.
  TransferId newer_than{};
  // The target's machine and directory, for the source's operator.
  std::string target;
  friend bool operator==(const OpenRequest&, const OpenRequest&) = default;
};

// Identifies a directory among all directories of one machine. The id is
// XXH3-128 over the machine's boot id and the directory's device and inode, so
// it reveals nothing to another machine.
struct Place {
  Digest128 id;
  bool is_own = false;  // a directory of the source; false: a parent of it
  friend bool operator==(const Place&, const Place&) = default;
};

struct Opened {
  static constexpr char kName[] = "Opened";

  TransferId transfer_id{};
  std::string source_database_id;
  uint64_t snapshot_sequence = 0;
  uint32_t lanes = 0;                 // the number that the source grants
  uint32_t family_count = 0;          // number of Family frames that follow
  std::vector<NamedValue> database_options;
  std::vector<std::string> notes;     // for the operator
  uint64_t snapshot_micros = 0;
  uint64_t plan_micros = 0;
  bool resumed = false;               // an earlier transfer is resumed
  // Time for which the source keeps the snapshot without a connected target.
  uint64_t lease_seconds = 0;
  // The source's directories and their parents.
  std::vector<Place> places;
  uint64_t taken_seconds = 0;  // since 1970: start of the snapshot
  // RocksDB release of the application that will open the replica; empty:
  // unknown. This is the release in the request. If the request has none, it is
  // the release in the source's OPTIONS.
  std::string application;
  // RocksDB release that wrote the source's OPTIONS; empty: unknown.
  std::string written_by;
  // The first RocksDB release that can open the files, and the feature that
  // requires this release. Empty: every release since 6.6 can open them.
  std::string opens_since;
  std::string opens_because;
  // Set only if a process has the database open and its WALs are empty. Then
  // the last flush was at this time or earlier, in seconds since 1970. 0 if
  // this is not so, or if it is unknown.
  uint64_t unlogged_since_seconds = 0;
  std::vector<OtherFile> other_files;
  friend bool operator==(const Opened&, const Opened&) = default;
};

// One column family, as the source's OPTIONS describe it.
struct FamilyDescription {
  std::string name;
  std::string comparator;
  std::string merge_operator;  // empty: no merge operator
  std::string table_factory;   // "BlockBasedTable" or "PlainTable"
  std::vector<NamedValue> options;
  std::vector<NamedValue> table_options;
  friend bool operator==(const FamilyDescription&,
                         const FamilyDescription&) = default;
};

struct Family {
  static constexpr char kName[] = "Family";

  uint32_t index = 0;  // families are numbered 0, 1, ... in a transfer
  FamilyDescription description;
  uint32_t format_version = 0;  // format_version of the chunks that follow
  uint64_t estimated_entries = 0;
  uint64_t estimated_bytes = 0;
  uint32_t source_files = 0;
  friend bool operator==(const Family&, const Family&) = default;
};

// Returns the encoded size in bytes of the item in a Parts payload.
size_t EncodedBytes(const Part& item);

// Some parts of a plan, with ascending ids and without gaps. A long list is
// sent in several messages.
struct Parts {
  static constexpr char kName[] = "Parts";

  std::vector<Part> parts;
  friend bool operator==(const Parts&, const Parts&) = default;
};

enum class PlanAction : uint8_t {
  kRebuild = 0,
  kDelta = 1,  // the entries that a comparison finds different; refresh only
};
inline constexpr uint8_t kMaxPlanAction = 1;

struct PlanItem {
  uint32_t family = 0;
  KeyInterval interval;
  std::string file;  // name of the source's file; empty: several files
  uint64_t bytes = 0;
  PlanAction action = PlanAction::kRebuild;
  std::string reason;
  friend bool operator==(const PlanItem&, const PlanItem&) = default;
};

// Returns the encoded size in bytes of the item in a PlanItems payload.
size_t EncodedBytes(const PlanItem& item);

struct PlanItems {
  static constexpr char kName[] = "PlanItems";

  std::vector<PlanItem> items;
  friend bool operator==(const PlanItems&, const PlanItems&) = default;
};

struct PlanEnd {
  static constexpr char kName[] = "PlanEnd";

  uint32_t part_count = 0;
  uint64_t estimated_bytes = 0;
  friend bool operator==(const PlanEnd&, const PlanEnd&) = default;
};

// Payload of Ping and Pong: the receiver of a Ping answers with a Pong that has
// the same token.
struct Ping {
  static constexpr char kName[] = "Ping";

  uint64_t token = 0;
  friend bool operator==(const Ping&, const Ping&) = default;
};

// The source's counters and stage times since its start. Stage times are summed
// over all lanes, in microseconds.
struct Stats {
  static constexpr char kName[] = "Stats";

  uint64_t entries = 0;
  uint64_t sst_bytes = 0;
  uint64_t wire_bytes = 0;
  uint64_t read_build_micros = 0;
  uint64_t send_wait_micros = 0;
  uint64_t idle_micros = 0;
  uint64_t read_bytes = 0;  // from files; grows even while nothing is sent
  // Portion of send_wait_micros in which lanes only waited for the connection
  // or for the source's own rate limit.
  uint64_t send_blocked_micros = 0;
  // Times for which the source slowed lanes down, because the application
  // waited for CPUs (cpu) or for its disk (io).
  uint64_t held_cpu_micros = 0;
  uint64_t held_io_micros = 0;
  // Time for which the source slowed lanes down, because its own threads waited
  // for CPUs. Used if the application's waits cannot be measured.
  uint64_t held_latency_micros = 0;
  friend bool operator==(const Stats&, const Stats&) = default;
};

// With WireCompression::kAuto: switches compression of the lanes on or off.
struct Compress {
  static constexpr char kName[] = "Compress";

  bool on = false;
  friend bool operator==(const Compress&, const Compress&) = default;
};

// Requests the bytes from `offset` on of a file in Opened::other_files. At
// offset 0, the source reads the file again.
struct OtherFileRequest {
  static constexpr char kName[] = "OtherFileRequest";

  std::string name;
  uint64_t offset = 0;
  friend bool operator==(const OtherFileRequest&,
                         const OtherFileRequest&) = default;
};

// Maximum size of one part; a target may request several hundred parts.
inline constexpr uint32_t kMaxOtherPartBytes = 128u << 10;

// Answers an OtherFileRequest.
struct OtherFilePart {
  static constexpr char kName[] = "OtherFilePart";

  std::string problem;  // why the file cannot be sent; empty: it is sent
  uint64_t file_bytes = 0;
  Digest128 content{};      // digest of the complete file
  // True if fewer accounts of the source's machine can read the file than can
  // read the database.
  bool is_private = false;
  std::string bytes;
  friend bool operator==(const OtherFilePart&, const OtherFilePart&) = default;
};

// A part that the source need not send, and the totals of the chunks that the
// target received for it earlier.
struct ReceivedPart {
  uint32_t part_id = 0;
  Totals totals;
  friend bool operator==(const ReceivedPart&, const ReceivedPart&) = default;
};

// Returns the encoded size in bytes of the item in a Received payload.
size_t EncodedBytes(const ReceivedPart& item);

// Lists parts that the source need not send. The target sends it before Finish,
// so that the source's totals cover all parts. A long list is sent in several
// messages.
struct Received {
  static constexpr char kName[] = "Received";

  std::vector<ReceivedPart> parts;
  friend bool operator==(const Received&, const Received&) = default;
};

// Finish (target) and Finished (source): totals per family in index order.
struct Finish {
  static constexpr char kName[] = "Finish";

  std::vector<Totals> families;
  Stats stats;  // the sender's final values
  friend bool operator==(const Finish&, const Finish&) = default;
};

}  // namespace sstferry
