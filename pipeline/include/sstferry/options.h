// Options and results that the source and the target share. Plain structs with
// default values. Sizes are in bytes.
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
#include "sstferry/store_options.h"
#include "sstferry/transport.h"

namespace rocksdb {
class Comparator;
class FileSystem;
class MergeOperator;
class SliceTransform;
}  // namespace rocksdb

namespace sstferry {

enum class LogLevel { kError = 0, kWarning = 1, kInfo = 2, kDebug = 3 };
// May be called from several threads at the same time.
using LogFunction = std::function<void(LogLevel, const std::string&)>;

// Operators that an application adds to RocksDB's built-in ones. Borrowed
// objects must outlive every transfer that uses them.
struct OperatorRegistry {
  std::vector<const rocksdb::Comparator*> comparators;
  std::vector<std::shared_ptr<rocksdb::MergeOperator>> merge_operators;
  std::vector<std::shared_ptr<const rocksdb::SliceTransform>>
      prefix_extractors;
};

// Address of a source:
//   a database directory
//   sst://HOST[:PORT]/NAME        a database of a server
//   unix:/PATH:NAME               the same, through a socket on this machine
//   ssh://[USER@]HOST[:PORT]/DIR, [USER@]HOST:/DIR
//                                 a directory on a machine that ssh logs in to
//   s3://BUCKET[/PREFIX][@SET], file:///DIR[@SET]
//                                 an archive
// MakePull() and the like detect that a directory (DIR or DIR@SET) is an
// archive.
struct SourceAddress {
  std::string directory;  // set, or:
  std::string host;       // host name, or socket path (begins with '/')
  uint16_t port = 0;      // 0: a socket, or the port that ssh chooses
  std::string name;       // database name; or empty, to list the names
  std::string user;       // for ssh; empty: the user that ssh chooses
  std::optional<StoreAddress> archive;  // set instead of all fields above
  // Set of the archive: its name, a label (the newest set with this label), a
  // UTC time ("20261124T030000Z" or "2026-11-24T03:00:00Z": the newest set up
  // to this time), or "latest". Empty: the newest set.
  std::string set;
  bool is_directory() const { return host.empty() && !archive.has_value(); }
  bool is_archive() const { return archive.has_value(); }
  bool is_ssh() const { return !host.empty() && !directory.empty(); }
  std::string ToString() const;
};
// Returns "s3://b/p" for s3:/b/p, S3://b/p and https://b/p, which are no
// addresses; empty for all others.
std::string MeantBucket(const std::string& text);
// Parses an address. InvalidArgument: the message says what is wrong.
[[nodiscard]] rocksdb::Status ParseSourceAddress(const std::string& text,
                                                 SourceAddress* out);
// Checks for 1 to 8 components of [A-Za-z0-9._-]+ except "." and "..",
// separated by slashes, at most 240 bytes.
bool IsValidDatabaseName(const std::string& name);
inline constexpr char kDatabaseNameGrammar[] =
    "1 to 240 characters of A-Z a-z 0-9 . _ - (or a path of such names, at "
    "most 8 deep)";

enum class Durability {
  kChunk,  // sync each chunk before recording it; a crash loses no chunk
  kNone,   // sync everything once, before the final rename
};

// How a pull moves data into a new database.
enum class PullMethod {
  // Chosen by the rule of docs/methods.md: kClone where possible.
  kAuto,
  kIngest,  // as chunks, which RocksDB ingests
  kClone,   // as unchanged files of the source's snapshot
};

// Handling of the application's own files in the source's directory.
enum class OtherFiles {
  kCopy,    // a seed or swap copies those that format/other_file.h allows
  kIgnore,  // copies none; a swap keeps the files of target_dir
};

// The portion of a source's data that a pull, plan or verify covers.
struct Selection {
  std::vector<std::string> families;  // empty: all
  KeyInterval interval;
};

// How this process reaches a database, besides its address.
struct SourceAccess {
  TlsFiles tls;        // for a server over TCP; empty: no TLS
  SshCommands ssh;     // for a database over ssh
  StoreOptions store;  // for an archive in a bucket; without `where`
  Timeouts timeouts;
  std::string snapshot_dir;  // for a directory; empty: next to it
  std::string wal_dir;       // for a directory; empty: from OPTIONS
  // For a directory, also over ssh: how long its snapshot is retained after
  // this process ends.
  std::chrono::seconds snapshot_ttl{3600};
  OperatorRegistry registry;
  LogFunction log;
};
// Formats the options of `access` that a command line needs to reach `source`,
// each with a space before it; for commands in messages.
std::string AccessWords(const SourceAccess& access,
                        const SourceAddress& source);

struct PullOptions : SourceAccess {
  SourceAddress source;
  std::string target_dir;
  PullMode mode = PullMode::kPull;
  // kClone requires all keys and the family `default`, and that no process has
  // TARGET_DIR open. kAuto chooses kClone where it is allowed, but an
  // unfinished pull and a replica built from chunks keep their method. A
  // refresh by kIngest changes the replica in place.
  PullMethod method = PullMethod::kAuto;
  OtherFiles other_files = OtherFiles::kCopy;
  // Clones only: the new database keeps the source's database id, because it
  // will replace the source. Otherwise it gets a new id.
  bool keep_identity = false;
  // Clones only: a database on target_dir's file system. Files that it shares
  // with the source are linked instead of sent. Empty: target_dir itself, if it
  // is to be replaced.
  std::string reuse_dir;
  // Clones by kSwap only: exchanges the directories even if target_dir already
  // equals the source.
  bool always_swap = false;
  // kRefresh and kSwap only, down to delete_rate_bytes_per_sec. A non-empty
  // target_dir must have a record that it was pulled from this source, by the
  // source's database id.
  bool adopt = false;     // ignore that record
  std::string source_id;  // if the source has no lasting database id
  // In place: drop families that the source no longer has. Not allowed with a
  // selection.
  bool drop_missing = false;
  // Rate of ingestion while the target's compactions lag behind, in bytes per
  // second. 0: ingestion does not wait for compactions.
  uint64_t min_rate_bytes_per_sec = 8'000'000;
  // In place: at the end, compacts some of the deltas into the data below, in a
  // directory that no other process has open.
  bool compact = true;
  // If more consecutive keys than this exist only at the target, one range
  // deletion deletes them; otherwise they are deleted one by one. 0: always one
  // by one.
  uint32_t most_point_deletions = 10'000;
  // Minimum free space on target_dir's file system, in percent. With less, no
  // new chunk is started; if this lasts, the refresh ends with kNoSpace. 0: may
  // use all space.
  double min_free_percent = 5;
  // Swap only: called before and after the exchange. Each call of before_swap
  // is followed by a call of after_swap; if this process ends in between, the
  // next pull calls after_swap.
  SwapHook before_swap;
  SwapHook after_swap;
  // Swap only: the old database becomes TARGET_DIR.old-DATE, for
  // MakeOldRemoval() to delete later. Otherwise Run() deletes it.
  bool keeps_old = false;
  // Clones by kSwap only: target_dir holds an independent database, such as a
  // former primary. Its records are not trusted: files that the source also has
  // are compared with the source's bytes and then linked; if the file system
  // cannot link them, the pull ends with kRefused. The complete old database is
  // kept as TARGET_DIR.sstferry-old-DATE and never deleted, even if another run
  // completes the exchange.
  bool adopts_old = false;
  // Rate limit for deleting the old database's files; 0: no limit.
  uint64_t delete_rate_bytes_per_sec = 50'000'000;
  Selection selection;
  // By default a pull copies the source's present state; one of the next two
  // options chooses another snapshot. latest_snapshot: use the snapshot that
  // other pulls got a short time ago (ServeOptions::share_snapshots), so that
  // all replicas are equal.
  bool latest_snapshot = false;
  // Use the snapshot of this other transfer; its source must still have the
  // snapshot.
  std::optional<TransferId> snapshot_of;
  uint32_t lanes = 4;
  uint64_t chunk_bytes = 64'000'000;
  // Limit of the SST bytes that all lanes together write per second; 0: no
  // limit. Operation::SetMaxRate() changes it during a pull.
  uint64_t max_rate_bytes_per_sec = 0;
  // Uses all available CPU and disk: the source does not slow down when its
  // application waits, and no lane of either side runs at low priority.
  bool full_rate = false;
  WireCompression compression = WireCompression::kAuto;
  uint32_t compression_level = 0;  // 1 to 19; 0: the source's choice
  Durability durability = Durability::kChunk;
  bool verify = false;          // compare with the source before the rename
  // RocksDB release of the application that will open target_dir, such as
  // "8.11.4". Only files that this release can read are written or cloned.
  // Empty: the release that wrote the newest OPTIONS file of target_dir, if
  // that is a database; otherwise chunks are built for the source's
  // application, and a clone accepts all files.
  std::string for_rocksdb;
  // Ends at once, with a note, if target_dir already holds a database.
  bool if_absent = false;
  // Maximum duration of the whole pull; 0: no limit.
  std::chrono::milliseconds deadline{0};
  // Starts over instead of resuming an unfinished pull.
  bool restart = false;
  // Starts over if the snapshot of the unfinished pull is older than this, by
  // the clocks of both machines; 0: no limit.
  std::chrono::seconds max_age{0};
  // User id, group id and permission bits of a new database's directory; its
  // files get the same bits without execute permission. Default: those of the
  // directory that it replaces or fills, or else those of a newly created
  // directory. A database that is refreshed in place must already have these
  // values.
  std::optional<uint32_t> target_owner;
  std::optional<uint32_t> target_group;
  std::optional<uint32_t> target_mode;
  // The command line of this pull. A status query shows it as the command that
  // resumes the pull. Longer command lines than 64 KiB are not stored.
  std::string command_line;
  // Called with the transfer's id after the source has begun the transfer and
  // before the first chunk is sent; called again if the pull starts over.
  // Called from the thread of Run().
  std::function<void(const std::string& transfer_id)> on_transfer;
  // File system for everything that the target writes; null: the default file
  // system.
  std::shared_ptr<rocksdb::FileSystem> file_system;
};

// Returns true if a new directory may replace TARGET_DIR. Not called for a
// refresh in place.
inline bool MayExchange(const PullOptions& options) {
  return options.mode != PullMode::kPull;
}

// Upper limit for max_differences_shown. A verify keeps the shown differences
// in memory (keys truncated).
inline constexpr uint32_t kMaxDifferencesShown = 100'000;

// `wal_dir` is the left side's. A verify does not retry.
struct VerifyOptions : SourceAccess {
  SourceAddress left;
  SourceAddress right;
  Selection selection;
  // Transfer id of an unfinished pull. Compares the snapshot that the left side
  // retains for this pull. Not set: takes a new snapshot of the left side.
  std::optional<TransferId> left_snapshot;
  uint32_t lanes = 4;
  uint32_t max_differences_shown = 10;  // all differences are counted
};

// Time that the lanes of a pull have spent, by activity, summed over all lanes,
// in microseconds. The source reports its times once a second.
struct ProgressStages {
  uint64_t source_work = 0;     // reads and builds
  uint64_t source_blocked = 0;  // waits for the network or its rate limit
  uint64_t target_blocked = 0;  // waits for bytes
  uint64_t target_paced = 0;    // waits for max_rate_bytes_per_sec
  uint64_t target_cpu = 0;      // receives and checks
  uint64_t target_disk = 0;     // writes, syncs and ingests
};

// Progress of a transfer. Every member only grows, except the rates.
struct Progress {
  std::string phase;  // connect, snapshot, plan, transfer, sync, verify,
                      // swap, compact, delete
  uint64_t planned_bytes = 0;
  uint64_t done_bytes = 0;  // SST bytes received, or compared by verify
  uint64_t entries = 0;
  uint32_t lanes = 0;
  double seconds = 0;
  bool finished = false;
  // Why the source cannot be reached now; empty: it can be reached.
  std::string waiting_for;
  ProgressStages stages;  // pulls only
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

// How much a pull with this method would send.
struct MethodSummary {
  std::string method;   // "ingest", "clone"
  std::string why_not;  // why it cannot be used; empty: no known reason
  uint64_t files = 0;   // number of source files; 0: unknown
  // Bytes of chunks or files, uncompressed. For the planned method, only what
  // the target lacks; for the other method, everything. Bytes of chunks are an
  // estimate.
  uint64_t bytes = 0;
};

// Maximum length of a key in a report of differences; longer keys are
// truncated.
inline constexpr size_t kMaxShownKeyBytes = 256;

struct DifferenceSummary {
  std::string column_family;
  std::string key;         // its first kMaxShownKeyBytes
  uint64_t key_bytes = 0;  // size of the untruncated key
  std::string what;        // "only left", "only right", "value differs", ...
  std::string file;        // name of the differing file, if files were compared
};


// One side of a comparison, in its snapshot.
struct ComparedSide {
  std::string address;
  // Transfer whose retained snapshot was compared; empty: a new snapshot.
  std::string snapshot_transfer_id;
  std::string database_id;
  uint64_t snapshot_sequence = 0;
  // Set only for a directory that was pulled from the other side's database.
  std::string pulled_transfer_id;
  uint64_t pulled_sequence = 0;
};

// Counts of what the lanes of a pull received.
struct LaneCounts {
  uint64_t chunks_built = 0;
  uint64_t chunks_delta = 0;
  uint64_t chunks_cloned = 0;     // units of cloned files
  uint64_t chunks_unchecked = 0;  // cloned, without checksums
  // Parts sent as the entries that differ, after a comparison. entries_put and
  // entries_deleted count these entries.
  uint64_t parts_delta = 0;
  // Numbers of parts, by how each was found equal to the source's.
  //   parts_proven    compared, and proven by the received digests; 0 if the
  //                   target is a database that an application has open and
  //                   may have changed meanwhile
  //   parts_unproven  compared, not proven at first, compared again
  //   parts_whole     sent whole, because the target had no entry there
  uint64_t parts_proven = 0;
  uint64_t parts_unproven = 0;
  uint64_t parts_whole = 0;
  uint64_t entries_put = 0;
  uint64_t entries_deleted = 0;
};

// Names of the stages of a source and of a target, as in
// Summary::source_stage_seconds and target_stage_seconds.
inline constexpr const char* kSourceStages[] = {
    "snapshot", "plan",    "read_build",   "send_wait",
    "held_cpu", "held_io", "held_latency", "idle"};
inline constexpr const char* kTargetStages[] = {
    "receive", "stage_write", "check",  "ingest", "verify",
    "sync",    "swap",        "delete", "idle"};

// Report of a command. All commands use this struct, so that the JSON has one
// shape. Numbers that do not apply stay zero; SummaryToJson() makes them null.
struct Summary : LaneCounts {
  rocksdb::Status status;
  std::string error_where;
  bool failed_at_source = false;  // the source of a pull reported the failure
  std::string started_at;   // RFC 3339 UTC
  std::string finished_at;
  SideVersions source_versions;
  SideVersions target_versions;
  std::string mode;         // "pull", "refresh", "swap"
  std::string method;       // pull: "ingest", "clone"
  std::string method_reason;  // pull: the reason, as a sentence
  std::vector<MethodSummary> methods;  // plan: ingest and clone
  // for_rocksdb: the RocksDB release of the target's application; empty:
  // unknown. opens_since: the first release that can open the moved files;
  // empty: every release since 6.6 can. opens_because: why earlier releases
  // cannot.
  std::string for_rocksdb;
  std::string opens_since;
  std::string opens_because;
  std::string state;        // state of the target: "complete", ""
  std::string source;
  std::string target;
  Selection selection;      // as requested
  std::string transfer_id;  // 32 hex digits
  std::string source_database_id;
  uint64_t snapshot_sequence = 0;
  // RocksDB's last sequence number of the target itself, which counts
  // ingestions instead of the source's writes, unless the target is a clone.
  std::optional<uint64_t> target_sequence;
  // When the source began to take the snapshot, in seconds since 1970 by its
  // clock. The snapshot has everything written before. 0: unknown.
  uint64_t snapshot_taken_seconds = 0;
  // Set if an application has the source open and its WALs are empty. The
  // application's last flush was at least this long before the snapshot, and
  // the snapshot lacks later writes that skipped the WAL.
  std::optional<uint64_t> last_flush_seconds_before;
  // Refresh: the source's sequence number for the target's old contents, and
  // for its new contents.
  uint64_t sequence_old = 0;
  uint64_t sequence_new = 0;
  double outage_seconds = 0;  // swap only, including both hooks
  bool exchanged = false;     // target_dir was replaced by another directory
  std::vector<std::string> column_families;
  uint64_t parts = 0;
  uint64_t chunks = 0;
  uint64_t chunks_resumed = 0;
  // Finished clones: number of files that were sent and that were linked. Also
  // set by a swap of an ingested replica: files linked from the old one.
  uint64_t files_cloned = 0;
  uint64_t files_reused = 0;
  uint64_t bytes_reused = 0;
  // Application files that were sent or will be sent.
  uint64_t other_files = 0;
  uint64_t other_files_bytes = 0;
  uint64_t entries = 0;
  uint64_t key_value_bytes = 0;
  uint64_t sst_bytes = 0;
  // Portions of the two sizes above that an earlier, unfinished run had
  // received.
  uint64_t sst_bytes_resumed = 0;
  uint64_t key_value_bytes_resumed = 0;
  uint64_t wire_bytes = 0;
  // Number of compressed frames, and their bytes before and after compression.
  uint64_t compressed_frames = 0;
  uint64_t compressed_bytes_before = 0;
  uint64_t compressed_bytes_after = 0;
  uint64_t ingest_calls = 0;
  // Numbers of parts.
  //   parts_unchanged  compared and equal; in a refresh by files: linked
  //   parts_sent       sent, including parts_delta
  //   parts_compared   compared by digest
  //   parts_left       not done yet
  uint64_t parts_unchanged = 0;
  uint64_t parts_sent = 0;
  uint64_t parts_compared = 0;
  uint64_t parts_left = 0;
  uint64_t bytes_skipped = 0;  // estimated SST bytes of unchanged parts
  // Bytes of this run. bytes_read: read from files by the source for this
  // transfer, and by the target for comparisons. bytes_written: written into
  // tables and blob files at the target, including compactions if this process
  // opened the database.
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;
  // Upper bounds of the time for which an ingest call blocked the target's
  // writers: "p50", "p99", "max".
  std::map<std::string, uint64_t> write_blocked_micros;
  uint64_t compaction_debt_bytes = 0;  // RocksDB's estimate at the end
  // Refresh: level -> number of chunks that were ingested into it.
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
  // For verify.
  ComparedSide left;
  ComparedSide right;
  std::string compared;  // "files": both sides have the same files; "entries"
  uint64_t files_compared = 0;  // tables and blob files, of each side
  uint64_t bytes_compared = 0;
  uint64_t entries_left = 0;
  uint64_t entries_right = 0;
  uint64_t differences = 0;
  std::vector<DifferenceSummary> first_differences;  // in key order
  // For plan.
  std::vector<PlanItemSummary> items;
  // needed_bytes: space that the pull needs on the target's disk, excluding the
  // minimum free space. free_bytes: free space on this disk; 0: unknown, or no
  // TARGET_DIR.
  uint64_t needed_bytes = 0;
  uint64_t free_bytes = 0;
  std::vector<std::string> served_names;  // for plan sst://HOST:PORT
};

// Formats the JSON object of `--json` and last_transfer.json. `command` is
// "pull", "verify", "plan" or "serve".
std::string SummaryToJson(const Summary& summary, const std::string& command);
// Returns true if the pull changes the database in TARGET_DIR in place.
bool IsInPlace(const Summary& summary);
// Formats a key, which may not be UTF-8: printable text is unchanged; any other
// key, and text that begins with 0x, becomes "0x..." in hex. --begin and --end
// accept both forms.
std::string KeyToText(const rocksdb::Slice& key);
// Returns the duration without the deletion of replaced files, to compute
// rates.
double TransferSeconds(const Summary& summary);
std::string NowRfc3339();
// Formats seconds since 1970 as RFC 3339 UTC. Returns an empty string for 0 and
// after the year 9999.
std::string Rfc3339(uint64_t seconds);
// Parses the format of Rfc3339(). Returns false for other text.
[[nodiscard]] bool ParseRfc3339(const std::string& text, uint64_t* seconds);
// A recorded time that is farther ahead of the clock was recorded by a wrong
// clock. Clocks of machines that run NTP differ by much less.
inline constexpr uint64_t kMostAheadSeconds = 300;
// Returns the age of a recorded time; 0 if it is a little ahead. Both are
// seconds since 1970. Returns nullopt if the time is more than
// kMostAheadSeconds ahead: its age is unknown, and it is not recent.
std::optional<uint64_t> KnownAge(uint64_t now_seconds, uint64_t then_seconds);
// Quotes a text as one word of a shell command.
std::string ShellWord(const std::string& text);
std::string SoftwareVersion();  // "sstferry 0.1.0"
uint64_t PeakRssBytes();  // VmHWM of this process

}  // namespace sstferry
