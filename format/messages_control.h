// The messages of the control connection. See format/messages.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/messages_any.h"
#include "format/messages_refresh.h"
#include "format/messages_status.h"
#include "format/other_file.h"
#include "format/part.h"

namespace sstferry {

// Asks which databases are served; the payload is empty.
struct ListRequest {
  static constexpr char kName[] = "ListRequest";

  friend bool operator==(const ListRequest&, const ListRequest&) = default;
};

struct ListReply {
  static constexpr char kName[] = "ListReply";

  std::vector<std::string> names;
  // The file system of the directory below which S looks for databases. T
  // compares it with that of an earlier answer. 0: there is no directory.
  uint64_t file_system = 0;
  friend bool operator==(const ListReply&, const ListReply&) = default;
};

enum class Purpose : uint8_t { kPull = 0, kPlan = 1, kVerify = 2 };

// The snapshot that an OpenRequest asks for.
enum class SnapshotUse : uint8_t {
  kNew = 0,     // a new one
  kResume = 1,  // that of named_transfer, to resume the transfer; pull only
  kShare = 2,   // that of named_transfer, unchanged; a pull: kFeatureShare
  kInstead = 3, // a new one; named_transfer's may be released; pull only
  kLatest = 4,  // the one that others got a short time ago, or a new one:
                // kFeatureShare; named_transfer's, if not zeros, as kInstead
};

struct OpenRequest {
  static constexpr char kName[] = "OpenRequest";

  std::string database;               // NAME; its alphabet is checked
  Purpose purpose = Purpose::kPull;
  std::vector<std::string> families;  // empty: all
  KeyInterval interval;               // --begin, --end, in each family's order
  uint32_t lanes = 0;
  uint64_t chunk_bytes = 0;
  // Release of the RocksDB of the application that will open the replica;
  // empty: that of the source's application.
  std::string application;
  // Limit of the SST bytes that the source sends per second. 0: no limit, or
  // the target enforces one itself.
  uint64_t max_rate_bytes_per_sec = 0;
  bool full_rate = false;  // the source does not hold back for its application
  WireCompression compression = WireCompression::kNone;
  uint32_t compression_level = 0;       // 0: the source's choice
  SnapshotUse snapshot_use = SnapshotUse::kNew;
  TransferId named_transfer{};           // zero with kNew
  TransferMode mode = TransferMode::kSeed;
  CompareMode compare = CompareMode::kFiles;  // refresh only
  // New refresh only: numbers of TargetFamily and IntervalRecord items that
  // follow.
  uint32_t target_families = 0;
  uint32_t target_intervals = 0;
  // With kLatest: how long ago the target first asked and was told Busy,
  // rounded up. A snapshot that was new enough then still is.
  uint64_t waited_seconds = 0;
  // With kLatest: the transfer that TARGET_DIR holds; zeros: it holds nothing.
  // A snapshot that may be older is none for it.
  TransferId newer_than{};
  // The target's machine and directory, for the source's operator to read.
  std::string target;
  friend bool operator==(const OpenRequest&, const OpenRequest&) = default;
};

// Identifies a directory among all directories of one machine, and reveals
// nothing to another machine: XXH3-128 over the machine's boot id, device and
// inode.
struct Place {
  Digest128 id;
  bool is_own = false;  // a directory of the source; else one that contains it
  friend bool operator==(const Place&, const Place&) = default;
};

struct Opened {
  static constexpr char kName[] = "Opened";

  TransferId transfer_id{};
  std::string source_database_id;
  uint64_t snapshot_sequence = 0;
  uint32_t lanes = 0;                 // granted
  uint32_t family_count = 0;          // Family frames that follow
  std::vector<NamedValue> database_options;
  std::vector<std::string> notes;     // for the operator
  uint64_t snapshot_micros = 0;
  uint64_t plan_micros = 0;
  bool resumed = false;               // an earlier transfer is resumed
  uint64_t lease_seconds = 0;         // while no target is connected
  std::vector<Place> places;          // the source's directories, parents
  uint64_t taken_seconds = 0;  // since 1970: when the snapshot was begun
  // The release that the replica is made for: the request's, else the source's
  // OPTIONS'. Empty: not known.
  std::string application;
  // The release that wrote the source's OPTIONS; empty: not known.
  std::string written_by;
  // The first release that opens what is sent, and what asks for it. Empty:
  // every release since 6.6.
  std::string opens_since;
  std::string opens_because;
  // A process has the database open, and its WALs hold nothing: a time, since
  // 1970, before which its last flush was. 0: not so, or not known.
  uint64_t unlogged_since_seconds = 0;
  std::vector<OtherFile> other_files;
  friend bool operator==(const Opened&, const Opened&) = default;
};

// One column family as described by the source's OPTIONS.
struct FamilyDescription {
  std::string name;
  std::string comparator;
  std::string merge_operator;  // empty: none
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
  uint32_t format_version = 0;  // of the chunks to come
  uint64_t estimated_entries = 0;
  uint64_t estimated_bytes = 0;
  uint32_t source_files = 0;
  friend bool operator==(const Family&, const Family&) = default;
};

// Encoded size in bytes of the item inside a Parts payload.
size_t EncodedBytes(const Part& item);

// Part of a plan, which takes as many of these as needed; ids ascend without
// gaps.
struct Parts {
  static constexpr char kName[] = "Parts";

  std::vector<Part> parts;
  friend bool operator==(const Parts&, const Parts&) = default;
};

// kLookup and kDelta: of a refresh.
enum class PlanAction : uint8_t {
  kRebuild = 0,
  kSkip = 1,
  kLookup = 2,  // the keys that may have changed
  kDelta = 3,   // the entries that differ, after a comparison
};
inline constexpr uint8_t kMaxPlanAction = 3;

struct PlanItem {
  uint32_t family = 0;
  KeyInterval interval;
  std::string file;  // name of the source's file; empty: several files
  uint64_t bytes = 0;
  PlanAction action = PlanAction::kRebuild;
  std::string reason;
  friend bool operator==(const PlanItem&, const PlanItem&) = default;
};

// Encoded size in bytes of the item inside a PlanItems payload.
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
  uint32_t interval_count = 0;
  friend bool operator==(const PlanEnd&, const PlanEnd&) = default;
};

// Ping and Pong: the receiver of a Ping answers with a Pong of the same token.
struct Ping {
  static constexpr char kName[] = "Ping";

  uint64_t token = 0;
  friend bool operator==(const Ping&, const Ping&) = default;
};

// The source's counters and its stage clock, since the start. Stages are
// lane-microseconds, summed over lanes.
struct Stats {
  static constexpr char kName[] = "Stats";

  uint64_t entries = 0;
  uint64_t sst_bytes = 0;
  uint64_t wire_bytes = 0;
  uint64_t read_build_micros = 0;
  uint64_t send_wait_micros = 0;
  uint64_t idle_micros = 0;
  uint64_t read_bytes = 0;  // from files; grows also while nothing is sent
  // The part of send_wait in which lanes waited for the connection (or for the
  // source's own rate limit) and did no work.
  uint64_t send_blocked_micros = 0;
  // Stages in which lanes held back, since the application waited: for CPUs;
  // for its disk; or, where it cannot be seen, as threads of the source did.
  uint64_t held_cpu_micros = 0;
  uint64_t held_io_micros = 0;
  uint64_t held_latency_micros = 0;
  friend bool operator==(const Stats&, const Stats&) = default;
};

// With WireCompression::kAuto: switches the lanes' compression on or off.
struct Compress {
  static constexpr char kName[] = "Compress";

  bool on = false;
  friend bool operator==(const Compress&, const Compress&) = default;
};

// Asks for the bytes of one of Opened::other_files from `offset` on. Offset 0
// makes the source read the file anew.
struct OtherFileRequest {
  static constexpr char kName[] = "OtherFileRequest";

  std::string name;
  uint64_t offset = 0;
  friend bool operator==(const OtherFileRequest&,
                         const OtherFileRequest&) = default;
};

// Maximum of one part: a target asks for some hundred of them.
inline constexpr uint32_t kMaxOtherPartBytes = 128u << 10;

// Answers an OtherFileRequest.
struct OtherFilePart {
  static constexpr char kName[] = "OtherFilePart";

  std::string problem;  // why the file cannot come; empty: it can
  uint64_t file_bytes = 0;
  Digest128 content{};      // of the whole file
  // At the source fewer accounts can read it than can read the database.
  bool is_private = false;
  std::string bytes;
  friend bool operator==(const OtherFilePart&, const OtherFilePart&) = default;
};

// A part of which the target has received every chunk.
struct ReceivedPart {
  uint32_t part_id = 0;
  Totals totals;
  friend bool operator==(const ReceivedPart&, const ReceivedPart&) = default;
};

// Encoded size in bytes of the item inside a Received payload.
size_t EncodedBytes(const ReceivedPart& item);

// Sent before Finish in a resumed transfer: parts that the source need not
// send, so that its totals cover all. As many messages as needed.
struct Received {
  static constexpr char kName[] = "Received";

  std::vector<ReceivedPart> parts;
  friend bool operator==(const Received&, const Received&) = default;
};

// Finish (target) and Finished (source): totals per family in index order.
struct Finish {
  static constexpr char kName[] = "Finish";

  std::vector<Totals> families;
  Stats stats;  // the sender's; final values of its stages
  friend bool operator==(const Finish&, const Finish&) = default;
};

}  // namespace sstferry
