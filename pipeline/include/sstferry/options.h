// Options and results shared by the source and the target. Plain structs with
// their defaults; sizes in bytes, durations as std::chrono.
// Over 250 lines because options and results are read side by side.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/end_state.h"
#include "format/types.h"
#include "sstferry/refresh_options.h"
#include "sstferry/transport.h"

namespace rocksdb {
class Comparator;
class FileSystem;
class MergeOperator;
class SliceTransform;
}  // namespace rocksdb

namespace sstferry {

enum class LogLevel { kError = 0, kWarning = 1, kInfo = 2, kDebug = 3 };
// Called from any thread, one call at a time is not promised.
using LogFunction = std::function<void(LogLevel, const std::string&)>;

// What an application adds to RocksDB's built-in operators. Borrowed objects
// must outlive every transfer that uses them.
struct OperatorRegistry {
  std::vector<const rocksdb::Comparator*> comparators;
  std::vector<std::shared_ptr<rocksdb::MergeOperator>> merge_operators;
  std::vector<std::shared_ptr<const rocksdb::SliceTransform>>
      prefix_extractors;
};

// Where data comes from: a database directory, or sst://HOST[:PORT]/NAME.
struct SourceAddress {
  std::string directory;  // set, or:
  std::string host;
  uint16_t port = 0;
  std::string name;       // empty only where a list of names is asked for
  bool is_directory() const { return host.empty(); }
  std::string ToString() const;
};
// InvalidArgument says what is wrong with the text.
[[nodiscard]] rocksdb::Status ParseSourceAddress(const std::string& text,
                                                 SourceAddress* out);
// [A-Za-z0-9._-]{1,64}
bool IsValidDatabaseName(const std::string& name);

enum class Durability {
  kChunk,  // each chunk is synced before it is recorded; a crash loses none
  kNone,   // everything is synced once, before the final rename
};

// What to take of a source; the same for pull, plan and verify.
struct Selection {
  std::vector<std::string> families;  // empty: all
  KeyInterval interval;
};

struct PullOptions {
  SourceAddress source;
  std::string target_dir;
  PullMode mode = PullMode::kSeed;
  // Seeds: a non-empty target_dir is exchanged, not refused.
  bool replace = false;
  // Refreshes, from here on. A non-empty target_dir has to remember that it
  // was pulled from this source, by the source's database id.
  Visibility visibility = Visibility::kAll;
  bool adopt = false;     // whatever it remembers
  std::string source_id;  // of a source that has no database id that lasts
  CompareMode compare = CompareMode::kFiles;
  // Families that the source does not have any more are dropped. Not with a
  // selection.
  bool drop_missing = false;
  // While the target is behind with its compactions, ingestion goes on at no
  // more than this; 0: it does not wait for them.
  uint64_t min_rate_bytes_per_sec = 8'000'000;
  bool compact = true;  // replaced intervals, at the end
  // Of what that compaction reads; 0: no limit. Not set: of a database that
  // an application has open 100 MB/s, of a directory nobody else reads none.
  std::optional<uint64_t> compact_rate_bytes_per_sec;
  // Lanes of kAll and kChunk let other threads of this process and machine go
  // first, but not where a writer of the database could wait for them; the
  // deletion after a swap does so with its I/O.
  bool low_priority = true;
  // Of the file system that holds target_dir: below it no chunk is begun. If
  // that lasts, the refresh ends with kNoSpace. 0: all of it may be used.
  double min_free_percent = 5;
  // Of a swap, around the exchange. Once before_swap was called, after_swap is,
  // whatever happens; if the process dies in between, by the next pull.
  SwapHook before_swap;
  SwapHook after_swap;
  // Of the old database's files while they are deleted; 0: no limit.
  uint64_t delete_rate_bytes_per_sec = 50'000'000;
  Selection selection;
  uint32_t lanes = 4;
  uint64_t chunk_bytes = 64'000'000;
  // SST bytes that all lanes write; 0: no limit. Operation::SetMaxRate()
  // changes it while a pull runs.
  uint64_t max_rate_bytes_per_sec = 0;
  WireCompression compression = WireCompression::kAuto;
  uint32_t compression_level = 0;  // 1 to 19; 0: the source's choice
  Durability durability = Durability::kChunk;
  bool verify = false;          // compare with the source before the rename
  uint32_t format_version = 0;  // of SST files; 0: as the source's files
  CarryMode carry = CarryMode::kAuto;
  std::string timeline_file;    // CSV, one line a second; empty: none
  std::string snapshot_dir;     // for a directory source; empty: beside it
  std::string wal_dir;          // of a directory source; empty: as it tells
  TlsFiles tls;                 // for a source over TCP; empty: plain
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds peer_timeout{10'000};  // two silent intervals
  // A source that answers but neither reads nor sends for so long, or a target
  // that takes nothing of an in-process source: TOO_SLOW.
  std::chrono::milliseconds stall_timeout{120'000};
  // Time for the source's first answer in this run, of a resumed pull, too;
  // after that retry_for holds. Not set: 10 s, or retry_for if that is less.
  std::optional<std::chrono::milliseconds> wait_for_source;
  // A lost connection is tried again for so long without progress.
  std::chrono::milliseconds retry_for{600'000};
  // For the whole pull; 0: none.
  std::chrono::milliseconds deadline{0};
  // Begins anew where an unfinished pull could go on.
  bool restart = false;
  // For a directory source: how long its snapshot outlives this process.
  std::chrono::seconds snapshot_ttl{3600};
  OperatorRegistry registry;
  // Everything the target writes goes through this; null: the default one.
  std::shared_ptr<rocksdb::FileSystem> file_system;
  LogFunction log;
};

// Whether directories are exchanged, of what is asked for.
inline bool IsSwap(const PullOptions& options) {
  return options.mode == PullMode::kRefresh &&
         options.visibility == Visibility::kSwap;
}

// Of one verify: they are kept in memory, with keys cut.
inline constexpr uint32_t kMaxDifferencesShown = 100'000;

struct VerifyOptions {
  SourceAddress left;
  SourceAddress right;
  Selection selection;
  // A snapshot that left holds for a pull that has not ended, by that pull's
  // transfer id; none: left as it is.
  std::optional<TransferId> left_snapshot;
  uint32_t lanes = 4;
  uint32_t max_differences_shown = 10;  // all are counted
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds peer_timeout{10'000};
  std::chrono::milliseconds stall_timeout{120'000};  // as a pull's
  std::string snapshot_dir;
  std::string wal_dir;  // of a directory on the left; empty: as it tells
  TlsFiles tls;  // for each side over TCP; empty: plain
  OperatorRegistry registry;
  LogFunction log;
};

// Where a transfer stands; every member only grows, but for the rates.
struct Progress {
  std::string phase;  // connect, snapshot, plan, transfer, sync, verify,
                      // swap, compact, delete
  uint64_t planned_bytes = 0;
  uint64_t done_bytes = 0;  // SST bytes received, or compared by verify
  uint64_t entries = 0;
  uint32_t lanes = 0;
  double seconds = 0;
  bool finished = false;
  // Why the source cannot be reached now; empty: it can.
  std::string waiting_for;
};

struct SideVersions {
  std::string software;
  std::string rocksdb;
};

struct PlanItemSummary {
  std::string column_family;
  std::optional<std::string> begin;
  std::optional<std::string> end;
  std::string file;
  uint64_t bytes = 0;
  std::string action;
  std::string reason;
};

// Bytes of a key that a report of differences holds; the rest is cut off.
inline constexpr size_t kMaxShownKeyBytes = 256;

struct DifferenceSummary {
  std::string column_family;
  std::string key;         // its first kMaxShownKeyBytes
  uint64_t key_bytes = 0;  // of the whole key
  std::string what;        // "only left", "only right", "value differs", ...
};

// A side of a comparison, as it was pinned for it.
struct ComparedSide {
  std::string address;
  std::string held_transfer_id;  // whose snapshot was asked for; empty: none
  std::string database_id;
  uint64_t snapshot_sequence = 0;
  // Of a directory that a pull of the other side's database made, and nothing
  // else; else empty, and zero.
  std::string pulled_transfer_id;
  uint64_t pulled_sequence = 0;
};

// What a command reports; one struct so that JSON has one shape. Numbers that
// do not apply stay zero.
struct Summary {
  rocksdb::Status status;
  std::string error_where;
  std::string started_at;   // RFC 3339 UTC
  std::string finished_at;
  SideVersions source_versions;
  SideVersions target_versions;
  std::string mode;         // "seed", "refresh"
  std::string visibility;   // of a refresh: "all", "chunk", "swap"
  std::string state;        // of the target: "complete", "mixed", ""
  std::string source;
  std::string target;
  Selection selection;      // as it was asked for
  std::string replaced;     // where --replace left the old directory
  std::string transfer_id;  // 32 hex digits
  std::string source_database_id;
  uint64_t snapshot_sequence = 0;
  // Of a refresh: the source's sequences that the target held and holds.
  uint64_t sequence_old = 0;
  uint64_t sequence_new = 0;
  double outage_seconds = 0;  // of a swap, both hooks included
  std::vector<std::string> column_families;
  uint64_t ranges = 0;
  uint64_t chunks = 0;
  uint64_t chunks_built = 0;
  uint64_t chunks_carried = 0;
  uint64_t chunks_resumed = 0;
  uint64_t chunks_unchecked = 0;  // carried, without block checksums
  uint64_t entries = 0;
  uint64_t key_value_bytes = 0;
  uint64_t sst_bytes = 0;
  uint64_t sst_bytes_carried = 0;
  // The parts of both that an earlier, unfinished pull had received.
  uint64_t sst_bytes_resumed = 0;
  uint64_t key_value_bytes_resumed = 0;
  uint64_t wire_bytes = 0;
  // Of the frames that were compressed: how many, bytes before and after.
  uint64_t compressed_frames = 0;
  uint64_t compressed_bytes_before = 0;
  uint64_t compressed_bytes_after = 0;
  uint64_t ingest_calls = 0;
  // Of a refresh. Ranges that were found unchanged, by their files or by
  // digests; that were sent; whose digests were compared; not there yet.
  uint64_t ranges_unchanged = 0;
  uint64_t ranges_sent = 0;
  uint64_t ranges_compared = 0;
  uint64_t ranges_left = 0;
  uint64_t bytes_skipped = 0;  // estimated SST bytes of the unchanged ones
  // Of the target's ingest calls, each an upper bound of how long it let
  // nobody write: "p50", "p99", "max".
  std::map<std::string, uint64_t> write_blocked_micros;
  uint64_t compaction_debt_bytes = 0;  // as RocksDB estimates it, at the end
  // Of a refresh: level -> chunks that lay there once they were ingested.
  std::map<int, uint64_t> ingested_levels;
  std::map<int, uint64_t> levels;  // level -> files of the finished target
  double seconds = 0;
  std::map<std::string, double> source_stage_seconds;
  std::map<std::string, double> target_stage_seconds;
  uint64_t peak_rss_bytes = 0;
  uint32_t lanes = 0;
  uint32_t retries = 0;
  bool verified = false;           // pull --verify found both sides equal
  std::vector<std::string> notes;  // warnings and dropped options
  // verify
  ComparedSide left;
  ComparedSide right;
  uint64_t entries_left = 0;
  uint64_t entries_right = 0;
  uint64_t differences = 0;
  std::vector<DifferenceSummary> first_differences;  // in order
  std::string next;  // after a difference: what to type
  // plan
  std::vector<PlanItemSummary> items;
  std::vector<std::string> served_names;  // plan sst://HOST:PORT
};

// The object of `--json` and of last_transfer.json: keys as README lists them.
// `command` is "pull", "verify", "plan" or "serve".
std::string SummaryToJson(const Summary& summary, const std::string& command);
// Keys hold bytes that need not be UTF-8: printable text stays as it is,
// anything else (and text that begins with 0x) becomes "0x..." in hex. Either
// form is what --begin and --end take.
std::string KeyToText(const rocksdb::Slice& key);
// Without the deletion of what was replaced: what rates are counted over.
double TransferSeconds(const Summary& summary);
std::string NowRfc3339();
std::string SoftwareVersion();  // "sstferry 0.1.0"
uint64_t PeakRssBytes();  // VmHWM of this process

}  // namespace sstferry
