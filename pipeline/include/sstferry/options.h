// Options and results that source and target share, as plain structs. Sizes are
// in bytes.
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

// Operators (such as comparators) that the application has in addition to
// RocksDB's built-in ones. The objects must exist until all transfers that use
// them have ended.
struct OperatorRegistry {
  std::vector<const rocksdb::Comparator*> comparators;
  std::vector<std::shared_ptr<rocksdb::MergeOperator>> merge_operators;
  std::vector<std::shared_ptr<const rocksdb::SliceTransform>>
      prefix_extractors;
};

// Address of a source, in one of these forms:
//   DIR                           a database directory, or an archive
//   sst://HOST[:PORT]/NAME        a database of a server
//   unix:/PATH:NAME               a database of a server on this machine, by
//                                 the path of its socket
//   ssh://[USER@]HOST[:PORT]/DIR, [USER@]HOST:/DIR
//                                 a directory on a machine that ssh logs in to
//   s3://BUCKET[/PREFIX][@SET], file:///DIR[@SET]
//                                 an archive
// MakePull() and similar functions detect that a directory (DIR or DIR@SET) is
// an archive.
struct SourceAddress {
  // Path of a directory on this machine or on the machine of ssh. Otherwise
  // empty.
  std::string directory;
  // Host name, or path of a socket (begins with '/').
  std::string host;
  // 0: the address is a socket, or ssh chooses the port.
  uint16_t port = 0;
  // Name of the database. Empty: the command lists the names.
  std::string name;
  // User for ssh. Empty: ssh chooses the user.
  std::string user;
  // Set for an archive. Then all fields above are unused.
  std::optional<StoreAddress> archive;
  // The set of the archive to read. Empty or "latest": the newest set. Other
  // forms are the name of a set, a label, and a UTC time ("20261124T030000Z" or
  // "2026-11-24T03:00:00Z"). A label selects the newest set with this label. A
  // time selects the newest set at or before this time.
  std::string set;
  bool is_directory() const { return host.empty() && !archive.has_value(); }
  bool is_archive() const { return archive.has_value(); }
  bool is_ssh() const { return !host.empty() && !directory.empty(); }
  std::string ToString() const;
};
// Returns the address "s3://b/p" if `text` is a common mistake for it: s3:/b/p,
// S3://b/p or https://b/p. Otherwise returns an empty string.
std::string MeantBucket(const std::string& text);
// Parses an address. Returns InvalidArgument with the reason for other text.
[[nodiscard]] rocksdb::Status ParseSourceAddress(const std::string& text,
                                                 SourceAddress* out);
// Returns true for a path of 1 to 8 components, separated by slashes, of at
// most 240 bytes in total. A component consists of A-Z a-z 0-9 . _ - and is not
// "." or "..".
bool IsValidDatabaseName(const std::string& name);
inline constexpr char kDatabaseNameGrammar[] =
    "1 to 240 characters of A-Z a-z 0-9 . _ - (or a path of such names, at "
    "most 8 deep)";

enum class Durability {
  // Syncs each chunk before it is recorded as received. A crash loses no chunk.
  kChunk,
  // Syncs everything once, before the final rename.
  kNone,
};

// How a pull moves data into a new database.
enum class PullMethod {
  // sstferry chooses by the rule in docs/methods.md: kClone where it is
  // possible.
  kAuto,
  // As sorted chunks of entries, which RocksDB ingests.
  kIngest,
  // As the unchanged files of the source's snapshot.
  kClone,
};

// How a pull treats files in the source's directory that belong to the
// application, not to RocksDB.
enum class OtherFiles {
  // A pull into a new directory, or a swap, copies them. format/other_file.h
  // lists the exceptions.
  kCopy,
  // Copies no such files. A swap keeps the ones that target_dir has.
  kIgnore,
};

// The portion of a source's data that a pull, plan or verify covers.
struct Selection {
  std::vector<std::string> families;  // empty: all
  KeyInterval interval;
};

// How this process reaches the database at an address.
struct SourceAccess {
  // For a server over TCP. Empty: no TLS.
  TlsFiles tls;
  // For a directory over ssh.
  SshCommands ssh;
  // For an archive in a bucket. The member `where` is not used.
  StoreOptions store;
  Timeouts timeouts;
  // For a directory: where to put snapshots. Empty: next to the directory.
  std::string snapshot_dir;
  // For a directory: its WAL directory. Empty: read from the OPTIONS file.
  std::string wal_dir;
  // For a directory, also over ssh: how long its snapshot is retained after
  // this process has ended, so that a pull can be resumed.
  std::chrono::seconds snapshot_ttl{3600};
  OperatorRegistry registry;
  LogFunction log;
};
// Formats the command-line options that are needed to reach `source` with
// `access`, each with a space before it. Messages that show a command contain
// them.
std::string AccessWords(const SourceAccess& access,
                        const SourceAddress& source);

struct PullOptions : SourceAccess {
  SourceAddress source;
  std::string target_dir;
  PullMode mode = PullMode::kPull;
  // kClone requires that all keys and the family `default` are pulled, and that
  // no process has TARGET_DIR open. kAuto chooses kClone where it is allowed,
  // with two exceptions: an unfinished pull and a replica that was built from
  // chunks keep their method. A refresh by kIngest changes the replica in
  // place.
  PullMethod method = PullMethod::kAuto;
  OtherFiles other_files = OtherFiles::kCopy;
  // Clones only: the new database gets the source's database id. Use it only if
  // the new database will replace the source. Otherwise the new database gets
  // its own id.
  bool keep_identity = false;
  // Clones only: a database on the same file system as target_dir. Files that
  // this database shares with the source are linked instead of sent. Empty: if
  // target_dir will be replaced, it is used for this; otherwise no files are
  // linked.
  std::string reuse_dir;
  // Swaps by kClone only: exchanges the two directories even if target_dir
  // already equals the source.
  bool always_swap = false;
  // The options from here to delete_rate_bytes_per_sec are only for kRefresh
  // and kSwap. A non-empty target_dir must have a record that it was pulled
  // from a database with the source's id. `adopt` ignores the record.
  bool adopt = false;
  // Id of the source, if the source has no permanent database id.
  std::string source_id;
  // Refresh in place: drops column families that the source no longer has. Not
  // allowed with a selection.
  bool drop_missing = false;
  // While the target's compactions lag behind, ingests at this rate, in bytes
  // per second. 0: does not slow down ingestion for compactions.
  uint64_t min_rate_bytes_per_sec = 8'000'000;
  // Refresh in place: at its end, compacts some of the new tables with the data
  // in the levels below. Not done if another process has the directory open.
  bool compact = true;
  // Maximum number of consecutive keys that a refresh deletes one by one. A
  // longer run of keys that exist only at the target is deleted by one range
  // deletion. 0: always one by one.
  uint32_t most_point_deletions = 10'000;
  // Minimum free space on target_dir's file system, in percent. With less free
  // space, no new chunk is started. If the space stays too low, the refresh
  // ends with kNoSpace. 0: may use all space.
  double min_free_percent = 5;
  // Swap only: hooks before and after the exchange of the two directories.
  // After each call of before_swap, after_swap is also called. If this process
  // ends between the two calls, the next pull calls after_swap.
  SwapHook before_swap;
  SwapHook after_swap;
  // Swap only: keeps the old database as TARGET_DIR.old-DATE, until
  // MakeOldRemoval() deletes it. Otherwise Run() deletes it.
  bool keeps_old = false;
  // Swaps by kClone only: target_dir has an independent database, such as a
  // former primary, whose records may be wrong. A file that the source also has
  // is linked only after its bytes were compared with the source's. If the file
  // system cannot make links, the pull ends with kRefused. The complete old
  // database becomes TARGET_DIR.sstferry-old-DATE. sstferry never deletes it,
  // even if another run completes the exchange.
  bool adopts_old = false;
  // Rate limit for the deletion of the old database's files. 0: no limit.
  uint64_t delete_rate_bytes_per_sec = 50'000'000;
  Selection selection;
  // By default, a pull takes a new snapshot of the source; the next two options
  // choose another one. latest_snapshot uses the snapshot that other pulls got
  // a short time ago (see ServeOptions::share_snapshots). Then all replicas are
  // equal.
  bool latest_snapshot = false;
  // Uses the snapshot of the transfer with this id. The source must still have
  // that snapshot.
  std::optional<TransferId> snapshot_of;
  uint32_t lanes = 4;
  uint64_t chunk_bytes = 64'000'000;
  // Maximum rate at which all lanes together write SST bytes. 0: no limit.
  // Operation::SetMaxRate() can change it during a pull.
  uint64_t max_rate_bytes_per_sec = 0;
  // Uses all available CPU time and disk bandwidth: the source does not slow
  // down when its application waits, and no lane of either side runs at low
  // priority.
  bool full_rate = false;
  WireCompression compression = WireCompression::kAuto;
  // 1 to 19. 0: the source chooses.
  uint32_t compression_level = 0;
  Durability durability = Durability::kChunk;
  // Compares the new database with the source before the final rename.
  bool verify = false;
  // RocksDB release of the application that will open target_dir, such as
  // "8.11.4". Only files that this release can read are written or cloned.
  // Empty: uses the release that wrote the newest OPTIONS file in target_dir.
  // If target_dir is not a database, chunks are built for the release of the
  // source's application, and a clone may have any files.
  std::string for_rocksdb;
  // If target_dir already has a database, ends at once with a note.
  bool if_absent = false;
  // Maximum duration of the whole pull; 0: no limit.
  std::chrono::milliseconds deadline{0};
  // Starts over instead of resuming an unfinished pull.
  bool restart = false;
  // If the snapshot of an unfinished pull is older than this, by the clocks of
  // both machines, starts over. 0: no limit.
  std::chrono::seconds max_age{0};
  // User id, group id and permission bits of a new database's directory. Its
  // files get the same bits without execute permission. Not set: uses the
  // values of the directory that is replaced or filled, or the defaults for a
  // new directory. If a database is refreshed in place, it must already have
  // these values.
  std::optional<uint32_t> target_owner;
  std::optional<uint32_t> target_group;
  std::optional<uint32_t> target_mode;
  // Command line of this pull. If the pull is unfinished, a status query shows
  // this text as the command that resumes it. More than 64 KiB are not stored.
  std::string command_line;
  // Called with the transfer's id after the source has begun the transfer,
  // before the first chunk is sent. Called again if the pull starts over. The
  // calling thread is that of Run().
  std::function<void(const std::string& transfer_id)> on_transfer;
  // File system through which the target writes everything. Null: the default
  // file system.
  std::shared_ptr<rocksdb::FileSystem> file_system;
};

// Returns true if the pull may replace TARGET_DIR by a new directory. Not
// called for a refresh in place.
inline bool MayExchange(const PullOptions& options) {
  return options.mode != PullMode::kPull;
}

// Maximum of max_differences_shown. A verify keeps the differences that it will
// show in memory, with truncated keys.
inline constexpr uint32_t kMaxDifferencesShown = 100'000;

// The inherited `wal_dir` is for the left side. A verify does not retry after a
// lost connection.
struct VerifyOptions : SourceAccess {
  SourceAddress left;
  SourceAddress right;
  Selection selection;
  // Id of an unfinished pull from the left side. The verify compares the
  // snapshot that the left side retains for this pull. Not set: takes a new
  // snapshot.
  std::optional<TransferId> left_snapshot;
  uint32_t lanes = 4;
  // Maximum number of differences to describe. All are counted.
  uint32_t max_differences_shown = 10;
};

// Where the lanes of a pull have spent their time, in microseconds, summed over
// all lanes. The source reports its part once a second.
struct ProgressStages {
  // Reading, and building chunks.
  uint64_t source_work = 0;
  // Waiting for the network or for the source's rate limit.
  uint64_t source_blocked = 0;
  // Waiting for bytes from the source.
  uint64_t target_blocked = 0;
  // Waiting because of max_rate_bytes_per_sec.
  uint64_t target_paced = 0;
  // Receiving and checking.
  uint64_t target_cpu = 0;
  // Writing, syncing and ingesting.
  uint64_t target_disk = 0;
};

// Progress of a transfer. No number decreases during a transfer, except the
// rates.
struct Progress {
  // One of connect, snapshot, plan, transfer, sync, verify, swap, compact,
  // delete.
  std::string phase;
  uint64_t planned_bytes = 0;
  // SST bytes that a pull has received or a verify has compared.
  uint64_t done_bytes = 0;
  uint64_t entries = 0;
  uint32_t lanes = 0;
  double seconds = 0;
  bool finished = false;
  // Why the source cannot be reached at the moment. Empty: it can be reached.
  std::string waiting_for;
  // Set only by a pull.
  ProgressStages stages;
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

// How much data a pull with one of the two methods would send.
struct MethodSummary {
  // "ingest" or "clone".
  std::string method;
  // Why this method cannot be used. Empty: no reason is known.
  std::string why_not;
  // Number of the source's files. 0: unknown.
  uint64_t files = 0;
  // Uncompressed bytes to send. For the method of the plan, only data that the
  // target lacks; for the other method, all data. For chunks, an estimate.
  uint64_t bytes = 0;
};

// Maximum length of a key in a report of differences; longer keys are
// truncated.
inline constexpr size_t kMaxShownKeyBytes = 256;

struct DifferenceSummary {
  std::string column_family;
  // The key's first kMaxShownKeyBytes bytes.
  std::string key;
  // Size of the complete key.
  uint64_t key_bytes = 0;
  // Kind of difference: "only left", "only right", "value differs", ...
  std::string what;
  // Name of the file that differs, if files were compared.
  std::string file;
};


// Facts about one side of a comparison. They come from the side's snapshot.
struct ComparedSide {
  std::string address;
  // Id of the transfer for which the compared snapshot was retained. Empty: the
  // snapshot is new.
  std::string snapshot_transfer_id;
  std::string database_id;
  uint64_t snapshot_sequence = 0;
  // Set only if this side is a directory that was pulled from the other side's
  // database: that pull's id and sequence number.
  std::string pulled_transfer_id;
  uint64_t pulled_sequence = 0;
};

// Totals of the data that the lanes of a pull have received.
struct LaneCounts {
  uint64_t chunks_built = 0;
  uint64_t chunks_delta = 0;
  // Number of units of cloned files. A large file has several units.
  uint64_t chunks_cloned = 0;
  // Number of cloned units that could not be checked, because their files have
  // no checksums.
  uint64_t chunks_unchecked = 0;
  // Number of parts for which only the differing entries were sent, after a
  // comparison. entries_put and entries_deleted are the numbers of these
  // entries.
  uint64_t parts_delta = 0;
  // Numbers of parts, by the way in which the target's part became equal to the
  // source's.
  //   parts_proven    compared, and proven by the received digests; 0 if an
  //                   application has the target open and may have changed it
  //   parts_unproven  compared, but the first proof failed; compared again
  //   parts_whole     sent as a whole, because the target had no entry there
  uint64_t parts_proven = 0;
  uint64_t parts_unproven = 0;
  uint64_t parts_whole = 0;
  uint64_t entries_put = 0;
  uint64_t entries_deleted = 0;
};

// Names of the activities of a source and of a target. They are the keys of
// Summary::source_stage_seconds and target_stage_seconds.
inline constexpr const char* kSourceStages[] = {
    "snapshot", "plan",    "read_build",   "send_wait",
    "held_cpu", "held_io", "held_latency", "idle"};
inline constexpr const char* kTargetStages[] = {
    "receive", "stage_write", "check",  "ingest", "verify",
    "sync",    "swap",        "delete", "idle"};

// Report of any command. Numbers that do not apply to a command stay zero;
// SummaryToJson() makes them null.
struct Summary : LaneCounts {
  rocksdb::Status status;
  std::string error_where;
  // True if the failure was reported by the source of a pull.
  bool failed_at_source = false;
  // The two times are RFC 3339 text in UTC.
  std::string started_at;
  std::string finished_at;
  SideVersions source_versions;
  SideVersions target_versions;
  // One of "pull", "refresh", "swap".
  std::string mode;
  // Pull: "ingest" or "clone".
  std::string method;
  // Pull: why this method was used, as a sentence.
  std::string method_reason;
  // Plan: what each of the two methods would send.
  std::vector<MethodSummary> methods;
  // for_rocksdb is the RocksDB release of the target's application. Empty:
  // unknown. opens_since is the first release that can open the moved files.
  // Empty: all releases since 6.6 can. opens_because says why earlier releases
  // cannot.
  std::string for_rocksdb;
  std::string opens_since;
  std::string opens_because;
  // State of the target: "complete" or "".
  std::string state;
  std::string source;
  std::string target;
  // The families and keys that were requested.
  Selection selection;
  std::string transfer_id;  // 32 hex digits
  std::string source_database_id;
  uint64_t snapshot_sequence = 0;
  // Last sequence number of the target's RocksDB. In a clone, it is the
  // source's. In other replicas, it counts ingestions, not the source's writes.
  std::optional<uint64_t> target_sequence;
  // Time at which the source began to take the snapshot, in seconds since 1970
  // by the source's clock. The snapshot has all earlier writes. 0: unknown.
  uint64_t snapshot_taken_seconds = 0;
  // Set if an application has the source open and all of its WALs are empty.
  // The application's last flush was at least this long before the snapshot.
  // The snapshot lacks writes after this flush that the application made
  // without a WAL.
  std::optional<uint64_t> last_flush_seconds_before;
  // Refresh: the source's sequence numbers when the target's old contents were
  // pulled, and for the new contents.
  uint64_t sequence_old = 0;
  uint64_t sequence_new = 0;
  // Swap: seconds from the start of before_swap to the end of after_swap.
  double outage_seconds = 0;
  // True if another directory has replaced target_dir.
  bool exchanged = false;
  std::vector<std::string> column_families;
  uint64_t parts = 0;
  uint64_t chunks = 0;
  uint64_t chunks_resumed = 0;
  // Clones that are finished: numbers of files that were sent (files_cloned)
  // and linked (files_reused). A swap of an ingested replica also sets them for
  // the files that it linked from the old replica.
  uint64_t files_cloned = 0;
  uint64_t files_reused = 0;
  uint64_t bytes_reused = 0;
  // Number and size of the application's own files that were sent or will be
  // sent.
  uint64_t other_files = 0;
  uint64_t other_files_bytes = 0;
  uint64_t entries = 0;
  uint64_t key_value_bytes = 0;
  uint64_t sst_bytes = 0;
  // How much of sst_bytes and key_value_bytes an earlier, unfinished run had
  // already received.
  uint64_t sst_bytes_resumed = 0;
  uint64_t key_value_bytes_resumed = 0;
  uint64_t wire_bytes = 0;
  // Number of compressed frames, and their total size before and after
  // compression.
  uint64_t compressed_frames = 0;
  uint64_t compressed_bytes_before = 0;
  uint64_t compressed_bytes_after = 0;
  uint64_t ingest_calls = 0;
  // Numbers of parts, by result:
  //   parts_unchanged  compared and equal; in a refresh by files: linked
  //   parts_sent       sent, including parts_delta
  //   parts_compared   compared by digest
  //   parts_left       not done yet
  uint64_t parts_unchanged = 0;
  uint64_t parts_sent = 0;
  uint64_t parts_compared = 0;
  uint64_t parts_left = 0;
  // Estimated size of the unchanged parts in SST files.
  uint64_t bytes_skipped = 0;
  // Bytes that this run has read and written. bytes_read includes what the
  // source read for this transfer and what the target read for comparisons.
  // bytes_written includes tables and blob files at the target, and compactions
  // if this process opened the database.
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;
  // Upper bounds of the time that one ingest call blocked the target's writers,
  // for the keys "p50", "p99" and "max".
  std::map<std::string, uint64_t> write_blocked_micros;
  // RocksDB's estimate at the end of the run.
  uint64_t compaction_debt_bytes = 0;
  // Refresh: number of chunks that were ingested into each level.
  std::map<int, uint64_t> ingested_levels;
  // Number of files in each level of the finished target.
  std::map<int, uint64_t> levels;
  double seconds = 0;
  std::map<std::string, double> source_stage_seconds;
  std::map<std::string, double> target_stage_seconds;
  uint64_t peak_rss_bytes = 0;
  uint32_t lanes = 0;
  uint32_t retries = 0;
  // True if a pull with --verify found both sides equal.
  bool verified = false;
  // Warnings, and options that were not taken over.
  std::vector<std::string> notes;
  // The members from here to first_differences are set by a verify.
  ComparedSide left;
  ComparedSide right;
  // The way of the comparison: "files" if only the files of both sides were
  // compared, else "entries".
  std::string compared;
  // Number of tables and blob files on each side.
  uint64_t files_compared = 0;
  uint64_t bytes_compared = 0;
  uint64_t entries_left = 0;
  uint64_t entries_right = 0;
  uint64_t differences = 0;
  // The first differences in key order.
  std::vector<DifferenceSummary> first_differences;
  // The members from here to served_names are set by a plan.
  std::vector<PlanItemSummary> items;
  // needed_bytes is the space that the pull needs on the target's disk; it
  // excludes the minimum free space. free_bytes is the free space on this disk.
  // 0: unknown, or there is no TARGET_DIR.
  uint64_t needed_bytes = 0;
  uint64_t free_bytes = 0;
  // Names of a server's databases, for the address sst://HOST:PORT.
  std::vector<std::string> served_names;
};

// Formats the JSON object of `--json` and last_transfer.json. `command` is
// "pull", "verify", "plan" or "serve".
std::string SummaryToJson(const Summary& summary, const std::string& command);
// Returns true if the pull changes the existing database in TARGET_DIR, instead
// of replacing it.
bool IsInPlace(const Summary& summary);
// Formats a key, which may be any bytes. Printable text stays unchanged. Other
// keys, and text that begins with 0x, become "0x..." in hex. --begin and --end
// accept both forms.
std::string KeyToText(const rocksdb::Slice& key);
// Returns the pull's duration without the time to delete replaced files. Rates
// are computed from this duration.
double TransferSeconds(const Summary& summary);
std::string NowRfc3339();
// Formats seconds since 1970 as RFC 3339 UTC. Returns an empty string for 0 and
// after the year 9999.
std::string Rfc3339(uint64_t seconds);
// Parses the format of Rfc3339(). Returns false for other text.
[[nodiscard]] bool ParseRfc3339(const std::string& text, uint64_t* seconds);
// If a recorded time is more seconds than this ahead of the clock, one of the
// clocks is wrong. Clocks of machines that run NTP differ by much less.
inline constexpr uint64_t kMostAheadSeconds = 300;
// Returns the age of a recorded time in seconds. Both arguments are seconds
// since 1970. If the time is at most kMostAheadSeconds ahead of the clock,
// returns 0. If it is farther ahead, its age is unknown: returns nullopt.
std::optional<uint64_t> KnownAge(uint64_t now_seconds, uint64_t then_seconds);
// Quotes a text as one word of a shell command.
std::string ShellWord(const std::string& text);
// Returns "sstferry 0.1.0".
std::string SoftwareVersion();
// Returns the maximum memory that this process has used (VmHWM).
uint64_t PeakRssBytes();

}  // namespace sstferry
